// Package audit keeps one record of every statement that came through the
// proxy. A record of a protected query is durable before its first row leaves.
package audit

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"

	pg "github.com/pganalyze/pg_query_go/v5"

	"github.com/hiatus-tailor/tailor/ecg"
)

// Verdict says how a statement ended.
type Verdict string

// The verdicts. Released is written before the answer; the others once the
// statement has ended.
const (
	Passed   Verdict = "passed"
	Released Verdict = "released"
	Refused  Verdict = "refused"
	Failed   Verdict = "failed"
)

// Record is one statement. It holds no cell value and no literal.
type Record struct {
	Time          time.Time   `json:"time"`
	ID            string      `json:"id"`
	PreviousHash  string      `json:"previous_hash"`
	Hash          string      `json:"hash"`
	Session       string      `json:"session"`
	Principal     string      `json:"principal"`
	Database      string      `json:"database"`
	Client        string      `json:"client"`
	Fingerprint   string      `json:"fingerprint"`
	SQL           string      `json:"sql"`
	Verdict       Verdict     `json:"verdict"`
	SQLState      string      `json:"sqlstate"`
	Relations     []string    `json:"relations"`
	Epoch         int         `json:"epoch"`
	PolicyVersion int         `json:"policy_version"`
	Chain         int         `json:"chain"`
	Stages        []ecg.Stage `json:"stages"`
	AggregateRisk float64     `json:"aggregate_risk"`
	AggregateLoss float64     `json:"aggregate_loss"`
	MinBlock      int         `json:"min_block"`
	Recoding      string      `json:"recoding"`
	// K and M are set where a set-valued table is released: whoever knows M
	// codes of a subject finds at least K that it may be.
	K int `json:"k,omitempty"`
	M int `json:"m,omitempty"`
	// Rows is nil where the record was written before the answer.
	Rows       *int64  `json:"rows"`
	DurationMS float64 `json:"duration_ms"`
	PlanMS     float64 `json:"plan_ms"`

	statement string
}

// NewRecord starts the record of a statement. The text itself is kept only
// until its literals have been removed.
func NewRecord(now time.Time, statement string) *Record {
	id := make([]byte, 16)
	_, _ = rand.Read(id) // never fails: crypto/rand ends the process instead
	return &Record{
		Time: now.UTC(), ID: hex.EncodeToString(id), Relations: []string{}, Stages: []ecg.Stage{}, statement: statement,
	}
}

// unreadable stands for a text that could not be freed of its literals.
const unreadable = "(not shown: the text could not be parsed)"

// Bounds of the texts that are given to the parser, which a deeply nested one
// could crash: no tighter than the planner's, so that whatever is released is
// recorded with its text.
const (
	maxReadable       = 256 << 10
	maxReadableTokens = 8000
)

// redact fills SQL and Fingerprint.
func (r *Record) redact() {
	text := r.statement
	r.statement = ""
	if text == "" {
		return
	}
	r.SQL = unreadable
	if len(text) > maxReadable {
		return
	}
	if tokens, err := pg.Scan(text); err != nil || len(tokens.Tokens) > maxReadableTokens {
		return
	}
	normal, err := pg.Normalize(text)
	if err != nil {
		return
	}
	r.SQL = normal
	if print, err := pg.Fingerprint(text); err == nil {
		r.Fingerprint = print
	}
}

// seal links the record to the one before and computes its hash, the SHA-256
// of its JSON with an empty hash.
func (r *Record) seal(previous string) ([]byte, error) {
	r.PreviousHash, r.Hash = previous, ""
	line, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(line)
	r.Hash = hex.EncodeToString(sum[:])
	return json.Marshal(r)
}
