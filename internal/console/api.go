package console

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
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
		"tables":       c.tables,
		"table":        c.table,
		"chains":       c.chains,
		"policies":     c.policies,
		"epochs":       c.epochs,
		"waiting":      c.waiting,
		"findings":     c.findings,
		"schemas":      c.schemas,
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
