package tests

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// heldBack is a client's connection on which something happens before it proves who
// it is.
type heldBack struct {
	net.Conn
	before func()
}

func (h *heldBack) Write(b []byte) (int, error) {
	if bytes.HasPrefix(b, []byte("p")) && bytes.Contains(b, []byte(",p=")) {
		h.before()
	}
	return h.Conn.Write(b)
}

// TestWhoHoldsBackHisProofIsLookedUpAgain changes a role while a client of it is
// asked for its proof, and connections of the role are kept.
func TestWhoHoldsBackHisProofIsLookedUpAgain(t *testing.T) {
	p := shared.serve(t, "--upstream-reuse", "30s", "--wrong-password-pause", "0s")
	direct := shared.superuser(t)
	for i, c := range []struct{ change, want string }{
		{"SET work_mem = '4321kB'", ""}, // nothing that matters for a login
		{"NOLOGIN", "28P01 28000"},      // of the proxy or, where it had asked before, of PostgreSQL
		{"CONNECTION LIMIT 0", "53300"},
		{"PASSWORD 'another'", "28P01"},
	} {
		t.Run(c.change, func(t *testing.T) {
			user := fmt.Sprintf("heldback%d", i)
			mustExec(t, direct, fmt.Sprintf("CREATE ROLE %s LOGIN PASSWORD '%[1]s'", user))
			known := make(map[int32]bool)
			waitFor(t, func() bool { return t.Failed() || p.rushes(t, user, 40, known) > 20 })
			config, err := pgconn.ParseConfig(p.dsn(user))
			if err != nil {
				t.Fatal(err)
			}
			dial := config.DialFunc
			change := sync.OnceFunc(func() {
				mustExec(t, direct, "ALTER ROLE "+user+" "+c.change)
				time.Sleep(150 * time.Millisecond)
			})
			config.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
				conn, err := dial(ctx, network, address)
				return &heldBack{conn, change}, err
			}
			conn, err := pgconn.ConnectConfig(t.Context(), config)
			if err == nil {
				_ = conn.Close(context.Background())
			}
			if code := codeIn(err); code == "" && c.want != "" || !strings.Contains(c.want, code) {
				t.Errorf("a login during the change: %q (%v), want %q", code, err, c.want)
			}
		})
	}
}
