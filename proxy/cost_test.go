package proxy

import (
	"io"
	"testing"
	"time"

	"github.com/jackc/pgproto3/v2"

	"github.com/hiatus-tailor/tailor/catalog"
)

// again is a peer that says the same over and over, all of it at once.
type again []byte

func (a again) Read(p []byte) (int, error) { return copy(p, a), nil }

// nothingProtected is a catalog that has been read once.
type nothingProtected struct {
	Catalog
	snapshot *catalog.Snapshot
}

func (c nothingProtected) Snapshot() (*catalog.Snapshot, error) { return c.snapshot, nil }

// short are transactions of one short statement, as libpq sends and PostgreSQL
// answers them.
var short = map[string]struct{ asked, answered []message }{
	"simple": {
		[]message{&pgproto3.Query{String: "SELECT abalance FROM pgbench_accounts WHERE aid = 123456;"}},
		[]message{column, row, complete, ready},
	},
	"extended": {
		[]message{
			&pgproto3.Parse{Query: "SELECT abalance FROM pgbench_accounts WHERE aid = $1;"},
			bindOf(""), describe, &pgproto3.Execute{}, &pgproto3.Sync{},
		},
		[]message{&pgproto3.ParseComplete{}, &pgproto3.BindComplete{}, column, row, complete, ready},
	},
	"prepared": {
		[]message{bindOf("P_0"), describe, &pgproto3.Execute{}, &pgproto3.Sync{}},
		[]message{&pgproto3.BindComplete{}, column, row, complete, ready},
	},
}

var (
	describe = &pgproto3.Describe{ObjectType: 'P'}
	column   = &pgproto3.RowDescription{Fields: []pgproto3.FieldDescription{{
		Name:        []byte("abalance"),
		DataTypeOID: 23, DataTypeSize: 4,
	}}}
	row      = &pgproto3.DataRow{Values: [][]byte{[]byte("0")}}
	complete = &pgproto3.CommandComplete{CommandTag: []byte("SELECT 1")}
	ready    = &pgproto3.ReadyForQuery{TxStatus: 'I'}
)

func bindOf(statement string) message {
	return &pgproto3.Bind{
		PreparedStatement: statement, Parameters: [][]byte{[]byte("123456")},
		ResultFormatCodes: []int16{0},
	}
}

// transactions is a reader's session on a loop that runs transactions of one kind,
// one at each call, all but the sockets and the loop itself.
func transactions(tb testing.TB, kind string) (s *session, one func()) {
	tb.Helper()
	of := func(messages []message) again {
		frames, err := encode(messages...)
		if err != nil {
			tb.Fatal(err)
		}
		return frames
	}
	s, _, _ = bareSession(of(short[kind].asked), of(short[kind].answered))
	s.proxy.catalog = nothingProtected{snapshot: catalog.NewSnapshot(1, nil, nil)}
	s.principal.Reader = true
	s.out.to, s.up.to = io.Discard, io.Discard
	s.up.questions = &s.questions
	t := &loopSession{session: s}
	s.loopSession = t
	if kind == "prepared" {
		if err := s.parse(tb.Context(), framed('P', []byte("P_0\x00SELECT abalance FROM "+
			"pgbench_accounts WHERE aid = $1;\x00\x00\x00"))); err != nil {
			tb.Fatal(err)
		}
		s.expect.complete()
	}
	one = func() {
		if err := t.fromClient(); err != errAgain {
			tb.Fatal(err)
		}
		if err := t.fromServer(); err != errAgain {
			tb.Fatal(err)
		}
	}
	for range 2 * recordsOfAShape { // those have records of their own
		one()
	}
	if e := s.expect.head(); e != nil || s.questions.Load() != s.replies.Load() {
		tb.Fatalf("%+v is still to be answered", e)
	}
	return s, one
}

// BenchmarkTransaction is what the proxy itself does for a short transaction.
func BenchmarkTransaction(b *testing.B) {
	for kind := range short {
		b.Run(kind, func(b *testing.B) {
			_, one := transactions(b, kind)
			b.ReportAllocs()
			for b.Loop() {
				one()
			}
		})
	}
}

// TestAShortTransactionLeavesLittleToCollect bounds the objects that a
// transaction allocates: at tens of thousands a second, collecting them costs as
// much as forwarding.
func TestAShortTransactionLeavesLittleToCollect(t *testing.T) {
	for kind, most := range map[string]float64{"simple": 1, "extended": 1, "prepared": 0} {
		t.Run(kind, func(t *testing.T) {
			_, one := transactions(t, kind)
			if objects := testing.AllocsPerRun(1000, one); objects > most {
				t.Errorf("%v objects, want at most %v", objects, most)
			}
		})
	}
}

// TestTheClockIsAskedAtTheStartAndAtTheEnd counts how often: messages that are read
// together have arrived together.
func TestTheClockIsAskedAtTheStartAndAtTheEnd(t *testing.T) {
	for kind := range short {
		t.Run(kind, func(t *testing.T) {
			s, one := transactions(t, kind)
			var asked int64
			s.proxy.clock = func() time.Time { asked++; return time.Unix(asked, 0) }
			for range 3 {
				one()
			}
			if asked != 6 {
				t.Errorf("%d times in 3 transactions, want 6", asked)
			}
			var took time.Duration
			for _, sum := range s.stats.take(time.Unix(0, 0), s.recordAt) {
				took = sum.outcome.Duration.Truncate(time.Second)
			}
			if took != 3*time.Second {
				t.Errorf("they took %s by a clock that goes on by a second when it is asked", took)
			}
		})
	}
}
