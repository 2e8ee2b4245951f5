package console

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/hiatus-tailor/tailor/internal/audit"
)

// Bounds of a list of statements: how many are shown, how many are looked at for them, and how
// many are read at once.
const (
	pageLength = 50
	mostLooked = 5000
	readAtOnce = 250
)

// statements is a page of the list.
type statements struct {
	Entries []audit.Entry `json:"entries"`
	// Folded counts those among them that are left out, as they read catalogs only.
	Folded int `json:"folded"`
	Looked int `json:"looked"`
	// Next is the position before which older ones may be found, 0 at the end of the log.
	Next int64 `json:"next"`
}

// queries is a page of the list: those that meet the filter and have all words of a search, the
// youngest first. What tools ask of catalogs is left out and counted, unless it is asked for.
func (c *Console) queries(ctx context.Context, r *http.Request) (any, error) {
	f, err := filter(r.URL.Query())
	if err != nil {
		return nil, err
	}
	page := audit.Page{Most: readAtOnce}
	if before := r.URL.Query().Get("before"); before != "" {
		if page.Position, err = strconv.ParseInt(before, 10, 64); err != nil || page.Position < 1 {
			return nil, fmt.Errorf("%w: before is not a position", errUsage)
		}
	}
	words := strings.Fields(strings.ToLower(r.URL.Query().Get("q")))
	fold := r.URL.Query().Get("catalog") != "1"
	out := statements{Entries: []audit.Entry{}}
	for len(out.Entries) < pageLength && out.Looked < mostLooked {
		list, err := audit.List(ctx, c.pool, f, page)
		if err != nil {
			return nil, err
		}
		for i := range list {
			if len(out.Entries) == pageLength {
				return out, nil
			}
			e := &list[i]
			out.Looked++
			page.Position, out.Next = e.Position, e.Position
			cleared(e)
			switch {
			case !hasWords(e, words):
			case fold && c.chatter.is(e):
				out.Folded++
			default:
				out.Entries = append(out.Entries, *e)
			}
		}
		if len(list) < page.Most {
			out.Next = 0
			break
		}
	}
	return out, nil
}

// hasWords says whether each word of a search is somewhere in what the list shows of a
// statement. Literals have been removed: nobody finds out by searching whether one is there.
func hasWords(e *audit.Entry, words []string) bool {
	if words == nil {
		return true
	}
	text := strings.ToLower(strings.Join([]string{
		e.Principal, string(e.Verdict), e.SQLState, string(e.Event),
		strings.Join(e.Relations, " "), e.SQL,
	}, "\n"))
	for _, word := range words {
		if !strings.Contains(text, word) {
			return false
		}
	}
	return true
}

// chatter remembers, by fingerprint, which statements read catalogs only. It is safe for
// concurrent use.
type chatter struct {
	mu    sync.Mutex
	known map[string]bool
}

// mostChatter bounds how many fingerprints are remembered; beyond it all are forgotten.
const mostChatter = 10_000

// is says whether a statement that passed was a tool's, which read catalogs only.
func (c *chatter) is(e *audit.Entry) bool {
	if e.Verdict != audit.Passed || e.Event != "" || len(e.Relations) > 0 {
		return false
	}
	return c.reads(e.Fingerprint, e.SQL)
}

func (c *chatter) reads(fingerprint, sql string) bool {
	if sql == "" || fingerprint == "" {
		return false // not kept, or not readable
	}
	c.mu.Lock()
	only, ok := c.known[fingerprint]
	c.mu.Unlock()
	if ok {
		return only
	}
	only = audit.CatalogsOnly(sql)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known == nil || len(c.known) >= mostChatter {
		c.known = make(map[string]bool)
	}
	c.known[fingerprint] = only
	return only
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
	f := audit.Filter{
		Principal: q.Get("principal"), Relation: q.Get("relation"),
		Verdict: audit.Verdict(q.Get("verdict")),
	}
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
