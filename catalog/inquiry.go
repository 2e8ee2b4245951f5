package catalog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strconv"

	"github.com/jackc/pgproto3/v2"
	"github.com/jackc/pgx/v5"
)

// Inquiry asks about roles what Principal asks, and as sparingly, on a connection
// that somebody else writes to and reads from: it makes the questions and
// understands the answers. It does no input or output and is not safe for
// concurrent use. The zero value knows nothing yet.
type Inquiry struct{ known known }

// The statements that are prepared on the connection of an Inquiry, by name.
const (
	stateStatement     = "state"
	principalStatement = "principal"
)

// Inquire opens a connection for an Inquiry, at which the server has nothing more
// to say. It is the caller's to close.
func (c *Catalog) Inquire(ctx context.Context) (*Inquiry, net.Conn, error) {
	config := c.listener.Copy()
	config.RuntimeParams["application_name"] = "tailor logins"
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, nil, fmt.Errorf("inquire: %w", err)
	}
	raw, err := prepareInquiry(ctx, conn)
	if err != nil {
		_ = conn.Close(ctx)
		return nil, nil, fmt.Errorf("inquire: %w", err)
	}
	return &Inquiry{}, raw, nil
}

// prepareInquiry prepares the statements and takes the connection from the driver.
func prepareInquiry(ctx context.Context, conn *pgx.Conn) (net.Conn, error) {
	for name, sql := range map[string]string{stateStatement: selectState, principalStatement: selectPrincipal} {
		if _, err := conn.Prepare(ctx, name, sql); err != nil {
			return nil, err
		}
	}
	if err := conn.PgConn().SyncConn(ctx); err != nil {
		return nil, err
	}
	raw, err := conn.PgConn().Hijack()
	if err != nil {
		return nil, err
	}
	return raw.Conn, nil
}

// AskState appends the messages that ask for the server's state, and AskPrincipal
// those that ask for all there is to know of a role. The server answers each with
// BindComplete, one DataRow, CommandComplete and ReadyForQuery.
func (q *Inquiry) AskState(dst []byte) ([]byte, error) {
	return askPrepared(dst, &pgproto3.Bind{PreparedStatement: stateStatement})
}

// AskPrincipal is described at AskState.
func (q *Inquiry) AskPrincipal(dst []byte, name string) ([]byte, error) {
	return askPrepared(dst, &pgproto3.Bind{PreparedStatement: principalStatement, Parameters: [][]byte{[]byte(name)}})
}

func askPrepared(dst []byte, bind *pgproto3.Bind) ([]byte, error) {
	dst, err := bind.Encode(dst)
	if err != nil {
		return nil, err
	}
	if dst, err = (&pgproto3.Execute{}).Encode(dst); err != nil {
		return nil, err
	}
	return (&pgproto3.Sync{}).Encode(dst)
}

// Knows says that the server's state may tell all there is to know of a role.
func (q *Inquiry) Knows(name string) bool { return q.known.last(nil, name) != nil }

// Still is what was read of a role, if that is so in a state; else nil.
func (q *Inquiry) Still(name string, now State) *Principal { return q.known.still(nil, name, now) }

// errAnswer is of an answer that no question has.
var errAnswer = errors.New("the catalog gave an answer that it was not asked for")

// HearState understands the row that answers AskState. It fails where that is no
// answer to it, after which nothing on the connection can be relied on.
func (q *Inquiry) HearState(row [][]byte) (State, error) {
	if len(row) != 2 || row[0] == nil {
		return State{}, errAnswer
	}
	at, err := strconv.ParseFloat(string(row[1]), 64)
	if err != nil {
		return State{}, errAnswer
	}
	return State{text: string(row[0]), at: at}, nil
}

// HearPrincipal understands the row that answers AskPrincipal, and fails as
// HearState does. The principal of an unknown role has no verifier.
func (q *Inquiry) HearPrincipal(name string, row [][]byte) (*Principal, error) {
	if len(row) != 8 {
		return nil, errAnswer
	}
	for _, value := range row {
		if value == nil {
			return nil, errAnswer
		}
	}
	oid, err := strconv.ParseUint(string(row[3]), 10, 32)
	var projects []string
	errProjects := json.Unmarshal(row[6], &projects)
	until, errUntil := strconv.ParseFloat(string(row[2]), 64)
	truth := map[string]bool{"t": true, "f": false}
	reader, isBool := truth[string(row[4])]
	inherits, isBoolToo := truth[string(row[5])]
	if errors.Join(err, errProjects, errUntil) != nil || !isBool || !isBoolToo {
		return nil, errAnswer
	}
	return q.known.learn(&stated{state: string(row[1]), until: until, Principal: Principal{
		Name: name, OID: uint32(oid), Verifier: string(row[0]), Reader: reader,
		Inherits: inherits, Projects: projects, Settings: string(row[7]),
	}}), nil
}
