package console

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Drafter makes a first policy of the tables of a schema, as tailor policy init does. It changes
// nothing in the database.
type Drafter interface {
	// Draft measures what the role named in the request may read. Status is told what is being
	// done. A RefusedError says why there is no draft.
	Draft(ctx context.Context, asked *DraftRequest, status func(string)) (*Draft, error)
}

// RefusedError is why there is no draft, in words that quote no data.
type RefusedError struct{ Reason, Remedy string }

func (e *RefusedError) Error() string { return e.Reason + "; " + e.Remedy }

// DraftRequest is what a draft is asked for.
type DraftRequest struct {
	// Role is who asks: tables that it may not read are left out.
	Role, Schema string
	K            int // to be among the settings; 0 for none of one's own
	Setting      int // the one to take, from 1; 0 for the one that is suggested
	Answers      []DraftAnswer
}

// DraftAnswer changes what is suggested: the class of a column by its letter, or, without a
// column, whom the rows of a table are about, "x" to leave the table out.
type DraftAnswer struct{ Table, Column, Answer string }

// Draft is a first policy, with what it rests on.
type Draft struct {
	Schema   string         `json:"schema"`
	Tables   []DraftTable   `json:"tables"`
	Out      []string       `json:"out"` // tables that are left out, each with the reason
	Settings []DraftSetting `json:"settings"`
	Chosen   int            `json:"chosen"` // from 1
	File     string         `json:"file"`   // the policy as YAML
}

// DraftTable is a table that the draft may be about.
type DraftTable struct {
	Name     string `json:"name"`
	Measured string `json:"measured"`
	// Left says why the table is left out, "" if it is not.
	Left string `json:"left"`
	// Subject is the column that says whom a row is about, one of Subjects.
	Subject  string        `json:"subject"`
	Subjects []string      `json:"subjects"`
	Columns  []DraftColumn `json:"columns"` // without the subject
}

// DraftColumn is a column with its class.
type DraftColumn struct {
	Name    string        `json:"name"`
	Type    string        `json:"type"`
	Values  int           `json:"values"`
	Singles float64       `json:"singles"` // share of the rows that alone have their value
	Missing float64       `json:"missing"` // share of the rows
	Class   string        `json:"class"`   // a letter of Choices
	Choices []DraftChoice `json:"choices"`
	Remark  string        `json:"remark"` // why
	// Hierarchy is that of a quasi-identifier; Tells has what other columns follow from this one.
	Hierarchy string   `json:"hierarchy"`
	Tells     []string `json:"tells"`
}

// DraftChoice is a class that a column can have.
type DraftChoice struct {
	Letter string `json:"letter"`
	Name   string `json:"name"`
}

// DraftSetting is a k, and the l of the l-diversity of sensitive columns, with what they do.
type DraftSetting struct {
	K       int           `json:"k"`
	L       int           `json:"l"`
	Effects []DraftEffect `json:"effects"`
}

// DraftEffect is what a setting does to a table, in words.
type DraftEffect struct {
	Table string `json:"table"`
	Loss  string `json:"loss"`
	Risk  string `json:"risk"`
}

// mostK bounds what may be asked for.
const mostK = 10_000

// schemas lists where drafts can be made.
func (c *Console) schemas(ctx context.Context, _ *http.Request) (any, error) {
	role := ctx.Value(sessionKey{}).(*session).principal
	names := []string{}
	err := c.pool.QueryRow(ctx, `
		SELECT coalesce(array_agg(n.nspname::text ORDER BY n.nspname <> 'public', n.nspname), '{}')
		FROM pg_namespace n WHERE n.nspname !~ '^(pg_|information_schema$|tailor|research$)'
			AND has_schema_privilege($1, n.oid, 'USAGE')`, role).Scan(&names)
	return names, err
}

// draft makes a draft, one at a time: lines of JSON, {"status": …} while it is made, at the end
// {"draft": …} or {"error": …}. Whoever leaves the page ends it.
func (c *Console) draft(w http.ResponseWriter, r *http.Request) {
	asked, err := draftRequest(r)
	if err != nil {
		fail(w, http.StatusBadRequest, err.Error())
		return
	}
	if !c.drafting.TryLock() {
		w.Header().Set("Retry-After", "10")
		fail(w, http.StatusServiceUnavailable, "another draft is being made; try again")
		return
	}
	defer c.drafting.Unlock()
	w.Header().Set("Content-Type", "application/x-ndjson")
	lines, control := json.NewEncoder(w), http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Time{}) // nothing more is read of the request
	say := func(key string, value any) {
		_ = lines.Encode(map[string]any{key: value})
		_ = control.Flush()
	}
	made, err := c.drafter.Draft(r.Context(), asked, func(text string) { say("status", text) })
	var refused *RefusedError
	switch {
	case errors.As(err, &refused):
		say("error", refused.Error())
	case err != nil:
		if r.Context().Err() == nil {
			c.log.Error("console cannot answer", "error", err)
		}
		say("error", "the database cannot be asked; the proxy's log says why")
	default:
		say("draft", made)
	}
}

// draftRequest reads schema, k, setting and answers: table, column and answer with tabs between.
func draftRequest(r *http.Request) (*DraftRequest, error) {
	query := r.URL.Query()
	asked := &DraftRequest{
		Role: r.Context().Value(sessionKey{}).(*session).principal, Schema: query.Get("schema"),
	}
	if asked.Schema == "" {
		return nil, fmt.Errorf("%w: schema is missing", errUsage)
	}
	number := func(name string, least, most int) (int, error) {
		text := query.Get(name)
		if text == "" {
			return 0, nil
		}
		n, err := strconv.Atoi(text)
		if err != nil || n < least || n > most {
			return 0, fmt.Errorf("%w: %s is a number from %d to %d", errUsage, name, least, most)
		}
		return n, nil
	}
	var err error
	if asked.K, err = number("k", 2, mostK); err != nil {
		return nil, err
	}
	if asked.Setting, err = number("setting", 1, 9); err != nil {
		return nil, err
	}
	for _, text := range query["answer"] {
		parts := strings.Split(text, "\t")
		if len(parts) != 3 {
			return nil, fmt.Errorf("%w: an answer has a table, a column and a class", errUsage)
		}
		asked.Answers = append(asked.Answers, DraftAnswer{parts[0], parts[1], parts[2]})
	}
	return asked, nil
}
