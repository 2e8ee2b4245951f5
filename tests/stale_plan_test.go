package tests

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/hiatus-tailor/tailor/catalog"
	"github.com/hiatus-tailor/tailor/proxy"
)

// unnotifiedProxy is a proxy that hears nothing of the policies after its start until it is
// told to.
type unnotifiedProxy struct {
	address, database string
	hear              func()
}

func serveDeaf(t *testing.T, database string) *unnotifiedProxy {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	ctx, stop := context.WithCancel(context.Background())
	policies, err := catalog.Open(ctx, shared.cluster.ServiceDSN(database), log)
	if err != nil {
		t.Fatal(err)
	}
	config := proxy.DefaultConfig()
	config.Upstream = shared.cluster.Address()
	server, err := proxy.New(config, policies, noRecords{}, log, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ctx, listener) }()
	t.Cleanup(func() {
		stop()
		<-ended
		policies.Close()
	})
	return &unnotifiedProxy{listener.Addr().String(), database, func() { go policies.Watch(ctx) }}
}

func (d *unnotifiedProxy) connect(t *testing.T, user string) *pgx.Conn {
	t.Helper()
	return connect(t, "postgres://"+user+":"+user+"@"+d.address+"/"+d.database+"?sslmode=disable")
}

// TestWhatOvertakesAPlanIsSaidOrAnswered has a proxy plan statements on policies,
// copies and chains that are no longer what it knows.
func TestWhatOvertakesAPlanIsSaidOrAnswered(t *testing.T) {
	c := newClinic(t, "overtaken", 5, 5, crowd)
	const patients = "SELECT age, cost FROM patients"
	hidden := `CALL tailor.classify('public.patients', '%s', 'direct_identifier'); ` +
		`CALL tailor.activate('public.patients')`
	for i, x := range []struct {
		claim   string
		text    string
		warm    string // what is asked before, if not the text
		change  string
		heals   bool   // who is told to come again is answered, whether the proxy has heard or not
		carried bool   // another proxy answers the same reader first
		want    string // SQLSTATE; empty for an answer
		then    string // what is said once the proxy has heard
		again   string // what is then said of a statement that was prepared before
	}{
		{
			claim: "an activation", text: patients, change: `CALL tailor.activate('public.patients')`,
			want: "40001", again: "0A000",
		},
		{
			claim: "an activation, where the chain is to be refined", text: patients,
			warm:   "SELECT sex FROM patients",
			change: `CALL tailor.activate('public.patients')`, want: "40001",
		},
		{
			claim: "an activation, where the reader has not read", text: "SELECT ward FROM stays",
			warm:   "SELECT sex FROM patients",
			change: `CALL tailor.activate('public.stays')`, want: "40001",
		},
		{
			claim: "an activation and another proxy", text: patients,
			change: `CALL tailor.activate('public.patients')`, carried: true, want: "40001", again: "0A000",
		},
		{
			claim: "an activation that hides a column, and another proxy", text: patients, carried: true,
			change: fmt.Sprintf(hidden, "cost"), want: "40001", then: "42501", again: "0A000",
		},
		{
			claim: "an activation of a table without quasi-identifiers", text: "SELECT ward FROM stays",
			change: `CALL tailor.activate('public.stays')`, want: "40001", again: "0A000",
		},
		{
			claim: "a refresh", text: "SELECT age FROM patients",
			change: `CALL tailor.refresh('public.patients')`,
		},
		{
			claim: "a refresh and another proxy", text: "SELECT age FROM patients",
			change: `CALL tailor.refresh('public.patients')`, carried: true,
		},
		{
			claim: "a refresh, without quasi-identifiers, and another proxy", text: "SELECT ward FROM stays",
			change: `CALL tailor.refresh('public.stays')`, carried: true,
		},
		{
			claim: "refreshes that leave nothing of the copy", text: "SELECT age FROM patients",
			warm: "SELECT ward FROM stays",
			change: `CALL tailor.forget_chains('public.patients'); ` +
				`CALL tailor.refresh('public.patients'); CALL tailor.refresh('public.patients')`, want: "40001",
		},
		{
			claim: "chains that are forgotten", text: "SELECT age FROM patients",
			change: `CALL tailor.forget_chains('public.patients')`, want: "40001", heals: true,
		},
		{
			claim: "chains that are forgotten and another proxy", text: "SELECT age FROM patients",
			carried: true,
			change:  `CALL tailor.forget_chains('public.patients')`, want: "40001", heals: true,
		},
		{
			claim: "a parent that is activated and lends the same", text: aJoin,
			change: `CALL tailor.activate('public.patients')`, again: "0A000",
		},
		{
			claim: "a parent that lends less", text: aJoin, change: fmt.Sprintf(hidden, "sex"),
			want: "40001", then: "KA004", again: "0A000",
		},
		{
			claim: "a parent that lends less, and its child alone", text: "SELECT kind FROM encounters",
			change: fmt.Sprintf(hidden, "zip"),
		},
	} {
		t.Run(x.claim, func(t *testing.T) {
			d := serveDeaf(t, c.database)
			user := c.admit(t, fmt.Sprintf("overtaken_%d", i))
			simple, extended, prepared := d.connect(t, user), d.connect(t, user), d.connect(t, user)
			ways := map[string]func() error{
				"simple": func() error {
					_, err := simple.Exec(t.Context(), x.text, pgx.QueryExecModeSimpleProtocol)
					return err
				},
				"extended": func() error {
					_, err := extended.Exec(t.Context(), x.text, pgx.QueryExecModeExec)
					return err
				},
			}
			warm := x.warm
			if warm == "" {
				warm = x.text
				if _, err := prepared.Prepare(t.Context(), "kept", x.text); err != nil {
					t.Fatal(err)
				}
				ways["prepared"] = func() error { _, err := prepared.Exec(t.Context(), "kept"); return err }
			}
			mustExec(t, simple, warm)
			mustExec(t, c.direct, x.change)
			if x.carried {
				other := connect(t, c.dsn(user))
				waitFor(t, func() bool {
					for _, text := range []string{"SELECT age FROM patients", "SELECT ward FROM stays"} {
						if _, err := other.Exec(t.Context(), text); err != nil {
							return false
						}
					}
					return one[bool](t, c.direct,
						`SELECT bool_and(c.epoch = p.epoch) FROM tailor.chain c JOIN tailor.protection p `+
							`USING (relation)`)
				})
			}
			healed := false
			for way, ask := range ways {
				err := ask()
				if healed && err == nil {
					continue
				}
				if codeIn(err) != x.want || x.want == "" && err != nil {
					t.Errorf("%s: %v, want %q", way, err, x.want)
				}
				healed = x.heals
			}
			d.hear()
			for way, ask := range ways {
				want := x.then
				if way == "prepared" && x.again != "" {
					want = x.again
				}
				var err error
				for range 500 { // it takes a moment to hear
					if err = ask(); codeIn(err) == want && (want != "" || err == nil) ||
						err != nil && codeIn(err) != "40001" {
						break
					}
					time.Sleep(10 * time.Millisecond)
				}
				if codeIn(err) != want || want == "" && err != nil {
					t.Errorf("%s, once it has heard: %v, want %q", way, err, want)
				}
			}
		})
	}
}

// TestWhoHasNotHeardLetsNobodyIn has a proxy let a reader in to a chain that it
// knows, whose release an activation has closed.
func TestWhoHasNotHeardLetsNobodyIn(t *testing.T) {
	c := newClinic(t, "overtaken_shared", 5, 5, crowd)
	mustExec(t, c.direct,
		`CALL tailor.chain_scope('public.stays', 'table'); CALL tailor.activate('public.stays')`)
	d := serveDeaf(t, c.database)
	first, second := c.admit(t, "overtaken_first"), c.admit(t, "overtaken_second")
	mustExec(t, d.connect(t, first), "SELECT ward FROM stays")
	mustExec(t, c.direct,
		`CALL tailor.classify('public.stays', 'ward', 'direct_identifier'); `+
			`CALL tailor.activate('public.stays')`)
	refusedAs(t, d.connect(t, second), "SELECT ward FROM stays", "40001")
	if one[bool](t, c.direct,
		`SELECT bool_or(has_table_privilege($1, 'tailor_release.chain_' || chain, 'SELECT')) `+
			`FROM tailor.chain WHERE relation = 'stays'::regclass`, second) {
		t.Error("the release of the old policy is open to a reader again")
	}
}
