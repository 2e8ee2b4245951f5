package tests

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// answers asserts that a query comes back within two seconds.
func answers(t *testing.T, conn *pgx.Conn, query string) {
	t.Helper()
	soon(t, 2*time.Second, query, func(ctx context.Context) error {
		_, err := conn.Exec(ctx, query)
		return err
	})
}

// holdingReaders are ways in which a reader keeps a lock on what all read: the
// definition of a release that it may not read itself, an answer that is over, and
// one that is not.
var holdingReaders = []struct{ claim, sql string }{
	{
		"the definition of every release",
		`SELECT count(pg_get_viewdef(c.oid)) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE c.relkind = 'v' AND n.nspname IN ('tailor_release', 'research')`,
	},
	{"an answer", `SELECT age, zip FROM patients`},
	{"a part of an answer", `DECLARE c CURSOR FOR SELECT age, zip FROM patients; FETCH 5 FROM c`},
}

// TestActivationAndRefreshWaitForNoReader has a reader hold locks on the release,
// the copy and the shape while a column is hidden.
func TestActivationAndRefreshWaitForNoReader(t *testing.T) {
	for i, held := range holdingReaders {
		t.Run(held.claim, func(t *testing.T) {
			oneIn(t, 3, i)
			s, err := newStand(filepath.Join(stands, fmt.Sprintf("holding%d", i)))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(s.cluster.Stop)
			super := s.superuser(t)
			dba := connect(t, fmt.Sprintf("postgres://dba:dba@%s/hospital?sslmode=disable",
				s.cluster.Address()))
			mustExec(t, dba, `SET statement_timeout = '20s'`)
			p := s.serve(t)
			first, other := connect(t, p.dsn("researcher")), connect(t, p.dsn(s.reader(t)))
			for _, conn := range []*pgx.Conn{first, other} {
				mustExec(t, conn, `SELECT ward, age FROM patients`)
			}
			mustExec(t, first, `BEGIN;`+held.sql)
			for _, call := range []string{
				`CALL tailor.refresh('patients')`, `CALL tailor.refresh('patients')`,
				`CALL tailor.refresh('patients')`,
				`CALL tailor.classify('patients', 'ward', 'direct_identifier'); ` +
					`CALL tailor.activate('patients')`,
				`CALL tailor.forget_chains('patients')`,
			} {
				soon(t, 10*time.Second, call, func(ctx context.Context) error {
					_, err := dba.Exec(ctx, call)
					return err
				})
			}
			// What the policy hides by now is not read, whoever holds what.
			waitFor(t, func() bool {
				_, err := other.Exec(t.Context(), `SELECT ward FROM patients`)
				return err != nil
			})
			mustExec(t, first, `ROLLBACK`)

			// What was in use goes later.
			mustExec(t, dba, `CALL tailor.drop_orphans(); CALL tailor.refresh('patients'); `+
				`CALL tailor.activate('patients')`)
			waitFor(t, func() bool {
				_, err := other.Exec(t.Context(), `SELECT age FROM patients`)
				return err == nil
			})
			if shown := one[bool](t, super, `SELECT EXISTS (SELECT FROM information_schema.columns
				WHERE table_schema = 'research' AND table_name = 'patients' AND column_name = 'ward')`); shown {
				t.Error("research.patients shows a column that is hidden")
			}
			if copies := one[int](t, super,
				`SELECT count(*) FROM tailor.epoch WHERE relation = 'patients'::regclass
				AND to_regclass('tailor_store.epoch_' || epoch) IS NOT NULL`); copies > 2 {
				t.Errorf("%d copies are kept", copies)
			}
		})
	}
}

// TestAfterARefreshReadersWaitForNoReader has a reader hold a lock on the release
// of others, and on one that it shares with them.
func TestAfterARefreshReadersWaitForNoReader(t *testing.T) {
	for i, held := range holdingReaders {
		t.Run(held.claim, func(t *testing.T) {
			oneIn(t, 3, i+1)
			s, err := newStand(filepath.Join(stands, fmt.Sprintf("waiting%d", i)))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(s.cluster.Stop)
			dba := connect(t, fmt.Sprintf("postgres://dba:dba@%s/hospital?sslmode=disable",
				s.cluster.Address()))
			mustExec(t, dba, `SET statement_timeout = '20s'`)
			mustExec(t, dba, `CALL tailor.chain_scope('visits', 'table'); `+
				`CALL tailor.chain_scope('patients', 'table'); CALL tailor.activate('patients'); `+
				`CALL tailor.activate('visits')`)
			p := s.serve(t)
			first, other := connect(t, p.dsn("researcher")), connect(t, p.dsn(s.reader(t)))
			for _, conn := range []*pgx.Conn{first, other} {
				mustExec(t, conn, `SELECT age, zip FROM patients`)
			}
			mustExec(t, first, `BEGIN;`+held.sql)
			mustExec(t, dba, `CALL tailor.refresh('patients')`)
			answers(t, other, `SELECT age, zip FROM patients`)
			mustExec(t, dba, `CALL tailor.classify('patients', 'ward', 'direct_identifier'); `+
				`CALL tailor.activate('patients')`)
			soon(t, 5*time.Second, "after an activation", func(ctx context.Context) (err error) {
				for ctx.Err() == nil {
					if _, err = other.Exec(ctx, `SELECT age, zip FROM patients`); codeIn(err) != "40001" &&
						codeIn(err) != "0A000" {
						return err
					}
				}
				return err // what was planned before the proxy heard of it is to be tried again
			})
		})
	}
}
