package console

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/hiatus-tailor/tailor/internal/audit"
)

// errUsage is wrapped by what is wrong with a request.
var errUsage = errors.New("bad request")

// errNothing is returned where there is nothing under a name.
var errNothing = errors.New("not found")

// read answers a request for something to look at.
type read func(ctx context.Context, r *http.Request) (any, error)

// reads are the paths below /api that only look.
func (c *Console) reads() map[string]read {
	return map[string]read{
		"session": func(ctx context.Context, _ *http.Request) (any, error) {
			return ctx.Value(sessionKey{}).(*session).shown(), nil
		},
		"overview":     c.overview,
		"queries":      c.queries,
		"queries/{id}": c.query,
		"totals":       c.totals,
		"chains":       c.chains,
		"policies":     c.policies,
		"epochs":       c.epochs,
		"waiting":      c.waiting,
		"findings":     c.findings,
	}
}

// reading runs a read.
func (c *Console) reading(do read) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		v, err := do(r.Context(), r)
		switch {
		case errors.Is(err, errUsage):
			fail(w, http.StatusBadRequest, err.Error())
		case errors.Is(err, errNothing):
			fail(w, http.StatusNotFound, err.Error())
		case err != nil:
			c.unavailable(w, err)
		default:
			answer(w, v)
		}
	}
}

// pageLength is how many statements the list shows at once.
const pageLength = 50

// queries is a page of the list.
func (c *Console) queries(ctx context.Context, r *http.Request) (any, error) {
	f, err := filter(r.URL.Query())
	if err != nil {
		return nil, err
	}
	page := audit.Page{Most: pageLength}
	if before := r.URL.Query().Get("before"); before != "" {
		if page.Position, err = strconv.ParseInt(before, 10, 64); err != nil || page.Position < 1 {
			return nil, fmt.Errorf("%w: before is not a position", errUsage)
		}
	}
	entries, err := audit.List(ctx, c.pool, f, page)
	for i := range entries {
		cleared(&entries[i])
	}
	if entries == nil {
		entries = []audit.Entry{}
	}
	return entries, err
}

// query is one statement.
func (c *Console) query(ctx context.Context, r *http.Request) (any, error) {
	e, err := audit.One(ctx, c.pool, r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	if e == nil {
		return nil, fmt.Errorf("%w: no such record", errNothing)
	}
	cleared(e)
	return e, nil
}

// cleared removes literals from a statement whose log keeps them.
func cleared(e *audit.Entry) {
	if e.SQL != "" {
		e.SQL, _ = audit.WithoutLiterals(e.SQL)
	}
}

// totals adds up by principal and relation.
func (c *Console) totals(ctx context.Context, r *http.Request) (any, error) {
	f, err := filter(r.URL.Query())
	if err != nil {
		return nil, err
	}
	return audit.Totals(ctx, c.pool, f)
}

// filter reads the filter of a list.
func filter(q url.Values) (audit.Filter, error) {
	f := audit.Filter{Principal: q.Get("principal"), Relation: q.Get("relation"), Verdict: audit.Verdict(q.Get("verdict"))}
	for name, into := range map[string]*time.Time{"since": &f.Since, "until": &f.Until} {
		if text := q.Get(name); text != "" {
			t, err := time.Parse(time.RFC3339, text)
			if err != nil {
				return f, fmt.Errorf("%w: %s is not a time", errUsage, name)
			}
			*into = t
		}
	}
	for name, into := range map[string]*float64{"risk": &f.RiskAbove, "loss": &f.LossAbove} {
		if text := q.Get(name); text != "" {
			n, err := strconv.ParseFloat(text, 64)
			if err != nil || !(n >= 0 && n <= 1) {
				return f, fmt.Errorf("%w: %s is not a number from 0 to 1", errUsage, name)
			}
			*into = n
		}
	}
	return f, nil
}

// fail answers with a reason.
func fail(w http.ResponseWriter, status int, reason string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{"error": reason})
}

func answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}

// unavailable keeps the cause for the log.
func (c *Console) unavailable(w http.ResponseWriter, err error) {
	if !errors.Is(err, context.Canceled) {
		c.log.Error("console cannot answer", "error", err)
	}
	fail(w, http.StatusServiceUnavailable, "the database cannot be asked; the proxy's log says why")
}
