package audit

import (
	"crypto/rand"
	"encoding/hex"
	"time"

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

// Event says what a line of the log is about; a statement has none.
type Event string

// The events other than a statement.
const (
	Login      Event = "login"      // that was refused
	Completion Event = "completion" // how the answer to a released statement ended
)

// link is what every line of the log has: its place in the chain.
type link struct {
	Time time.Time `json:"time"`
	ID   string    `json:"id"`
	// Log names the chain, Sequence counts its lines from 1.
	Log          string `json:"log"`
	Sequence     int64  `json:"sequence"`
	PreviousHash string `json:"previous_hash"`
	Hash         string `json:"hash"`
	Event        Event  `json:"event,omitempty"`
	// LeftOut counts the lines that could not be kept since the one before: the
	// log was unavailable, or logins were refused too fast.
	LeftOut int64 `json:"left_out,omitempty"`
}

func (l *link) chained() *link { return l }

// Record is one statement, or a login that was refused. It holds no cell
// value, and no literal unless the log is told to keep them.
type Record struct {
	link
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
	// Generations are how far the chains had come that the statement reads. It was
	// committed before: a database whose chains are not that far has lost it.
	Generations map[int]int `json:"generations,omitempty"`
	// Rows is nil where the record was written before the answer.
	Rows       *int64  `json:"rows"`
	DurationMS float64 `json:"duration_ms"`
	PlanMS     float64 `json:"plan_ms"`
	// Runs is the number of runs that the record stands for, where it sums up
	// statements that passed and differ in literals only. It is 0 for one run.
	Runs int `json:"runs,omitempty"`

	statement string
	// written says that a sink holds the record, refused with which SQLSTATE
	// the statement was refused although it does.
	written bool
	refused string
	long    int // bytes of a long statement, while nobody waits for the record
}

// completion is how a part of the answer to a released statement ended.
// Verdict is empty where it ended well.
type completion struct {
	link
	Completes  string  `json:"completes"`
	Verdict    Verdict `json:"verdict,omitempty"`
	SQLState   string  `json:"sqlstate"`
	Rows       int64   `json:"rows"`
	DurationMS float64 `json:"duration_ms"`
}

// Outcome is how a statement ended. Duration counts from the message of the
// client to the end of the answer.
type Outcome struct {
	Verdict  Verdict
	SQLState string
	Rows     int64
	Duration time.Duration
}

// Shows notes the generation of a chain that the statement reads.
func (r *Record) Shows(chain, generation int) {
	if r.Generations == nil {
		r.Generations = make(map[int]int, 1)
	}
	r.Generations[chain] = generation
}

// NewRecord starts the record of a statement. The text itself is kept only
// until its literals have been removed.
func NewRecord(now time.Time, statement string) *Record {
	return &Record{
		link: link{Time: now.UTC(), ID: newID()}, Relations: []string{}, Stages: []ecg.Stage{},
		statement: Shown(statement),
	}
}

// NewLogin starts the record of a login that was refused. The name is what the
// client said, at most as long as a role's.
func NewLogin(now time.Time, principal, database, client, sqlstate string) *Record {
	r := NewRecord(now, "")
	r.Event, r.Verdict, r.SQLState = Login, Refused, sqlstate
	r.Principal, r.Database, r.Client = asName(principal), asName(database), client
	return r
}

// Refuse says that the statement does not run, whatever was recorded before.
func (r *Record) Refuse(sqlstate string) {
	if r.written {
		r.refused = sqlstate
		return
	}
	r.ID, r.Verdict, r.SQLState = newID(), Refused, sqlstate
}

// finish is the line that tells how a statement ended: its record, or the
// completion of the one that was written before.
func (r *Record) finish(now time.Time, o Outcome) chained {
	if r.written {
		c := &completion{
			link:      link{Time: now.UTC(), ID: newID(), Event: Completion},
			Completes: r.ID, SQLState: o.SQLState, Rows: o.Rows, DurationMS: milliseconds(o.Duration),
		}
		switch {
		case r.refused != "":
			c.Verdict, c.SQLState = Refused, r.refused
		case o.Verdict != Passed:
			c.Verdict = o.Verdict
		}
		return c
	}
	if r.Verdict == "" {
		r.Verdict, r.SQLState = o.Verdict, o.SQLState
	}
	r.Rows, r.DurationMS = &o.Rows, milliseconds(o.Duration)
	return r
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func newID() string {
	id := make([]byte, 16)
	_, _ = rand.Read(id) // never fails: crypto/rand ends the process instead
	return hex.EncodeToString(id)
}
