package tests

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestAPublicationOfAllTablesStopsNothing has one of everything there is, the tables of
// releases and of Tailor itself included.
func TestAPublicationOfAllTablesStopsNothing(t *testing.T) {
	direct := makeDatabase(t, "publishing", fenced)
	if err := shared.install(t.Context(), "publishing"); err != nil {
		t.Fatal(err)
	}
	mustExec(t, direct, fencedPolicy)
	p := serveDatabase(t, "publishing")
	reader := connect(t, p.dsn("researcher"))
	mustExec(t, reader, `SELECT age FROM people`)
	mustExec(t, direct, `CREATE PUBLICATION everything FOR ALL TABLES`)
	for _, sql := range []string{
		`SELECT age, zip, weight FROM people`,
		`SELECT p.age, day FROM visits v JOIN people p ON v.person = p.id`,
		`SELECT code FROM codes`, `SELECT age, count(*) FROM pay GROUP BY age`,
		`SELECT zip, weight FROM people`, `SELECT ward FROM beds`,
	} {
		mustExec(t, reader, sql)
	}
	if strays := one[[]string](t, direct, `SELECT array_agg(c.oid::regclass::text) FROM pg_class c
		WHERE c.relnamespace IN ('tailor'::regnamespace, 'tailor_store'::regnamespace)
			AND c.relkind = 'r' AND c.relreplident = 'd'
		  AND c.relname !~ '^(shape|chain)_' -- written once
		  AND NOT EXISTS (SELECT FROM pg_index i WHERE i.indrelid = c.oid
		  AND i.indisprimary)`); strays != nil {
		t.Errorf("tables without a replica identity: %v", strays)
	}
	for _, table := range []string{"people", "visits", "codes", "pay", "beds"} {
		mustExec(t, direct, `CALL tailor.refresh($1::text::regclass)`, table)
	}
	waitFor(t, func() bool { // until the proxy has heard of it
		_, err := reader.Exec(t.Context(), `SELECT age, zip, weight, ward FROM people`)
		return err == nil
	})
	// From what is shown, and from copies that wait.
	erase := `CALL tailor.erase('people', '7'); CALL tailor.erase('codes', '7'); ` +
		`CALL tailor.erase('people', '8', 'at_once')`
	mustExec(t, direct, erase)
	mustExec(t, direct, `BEGIN; CALL tailor.refresh('people'); CALL tailor.refresh('codes'); `+
		strings.NewReplacer("7", "9", "8", "10").Replace(erase)+`; COMMIT`)
	mustExec(t, direct,
		`CALL tailor.represent('public.people', 'weight', 'middle');
			CALL tailor.classify('public.people', 'ward', 'non_sensitive');
CALL tailor.schedule('public.people', '1 day'); CALL tailor.activate('public.people');
    CALL tailor.forget_chains('public.people'); CALL tailor.accept_restore()`)
	// As an earlier version has left it.
	mustExec(t, direct, `ALTER TABLE tailor.installation REPLICA IDENTITY DEFAULT`)
	for range 2 {
		if err := shared.install(t.Context(), "publishing"); err != nil {
			t.Fatal(err)
		}
	}
}

// TestDoctorNamesHowAPublicationIsMended publishes in every way, and what is mended
// is not found again.
func TestDoctorNamesHowAPublicationIsMended(t *testing.T) {
	s, err := newStand(filepath.Join(stands, "publications"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.cluster.Stop)
	super := s.superuser(t)
	mustExec(t, super, `CREATE TABLE wards (ward text, id integer) PARTITION BY RANGE (id);
CREATE TABLE ward_1 PARTITION OF wards FOR VALUES FROM (0) TO (100);
    INSERT INTO wards SELECT 'a', n FROM generate_series(1, 50) n;
CALL tailor.protect('wards', 'id', 5); CALL tailor.classify('wards', 'ward', 'non_sensitive');
    CALL tailor.activate('wards')`)
	ways := []string{
		"FOR ALL TABLES", "FOR TABLE patients, visits, numbers", "FOR TABLE wards",
		fmt.Sprintf("FOR TABLE tailor_store.epoch_%d, tailor.chain", one[int](t, super,
			`SELECT epoch FROM tailor.protection WHERE relation = 'wards'::regclass`)),
	}
	if one[int](t, super, `SELECT current_setting('server_version_num')::integer`) >= 150000 {
		ways = append(ways, "FOR TABLES IN SCHEMA public", "FOR TABLES IN SCHEMA tailor_store, tailor",
			"FOR TABLE patients, TABLES IN SCHEMA public")
	}
	for _, way := range ways {
		t.Run(way, func(t *testing.T) {
			published := func() (mends []string) {
				_, findings := doctor(t, s)
				for _, f := range findings {
					if f.Check == "publications" {
						mend, _, _ := strings.Cut(f.Mend, ";")
						mends = append(mends, mend)
					}
				}
				return mends
			}
			mustExec(t, super, `CREATE PUBLICATION news `+way)
			t.Cleanup(func() {
				_, _ = super.Exec(context.WithoutCancel(t.Context()), `DROP PUBLICATION IF EXISTS news`)
			})
			mends := published()
			if len(mends) == 0 {
				t.Fatal("not found")
			}
			for len(mends) > 0 {
				mustExec(t, super, mends[0])
				left := published() // what is published twice has another mend then
				if slices.Contains(left, mends[0]) && len(left) >= len(mends) {
					t.Fatalf("%s mends nothing", mends[0])
				}
				mends = left
			}
		})
	}
}
