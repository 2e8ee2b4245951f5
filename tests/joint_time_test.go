package tests

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// TestJointPublicationsAreQuick publishes the codes of people together with sex, age and
// postcode, and asks how common ten codes are by age and sex, beside the same over the
// tables themselves: the least of five each, in turn.
func TestJointPublicationsAreQuick(t *testing.T) {
	if !soaks() {
		t.Skip("it measures time: make soak")
	}
	s, err := newStand(filepath.Join(stands, "jointbench"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.cluster.Stop)
	direct, err := pgx.Connect(t.Context(), s.cluster.SuperuserDSN("hospital"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = direct.Close(context.Background()) })
	p := s.serve(t)
	reader := s.reader(t)
	for _, people := range []int{50_000, 167_000} {
		t.Run(fmt.Sprintf("%d people", people), func(t *testing.T) {
			name := fmt.Sprintf("bench%d", people)
			run := func(sql string) {
				if _, err := direct.Exec(t.Context(), sql); err != nil {
					t.Fatal(err)
				}
			}
			run(fmt.Sprintf(`SELECT setseed(0.25);
					CREATE TABLE %[1]s AS SELECT %[2]d::bigint * 1000 + n AS id, (random() * 89)::int
						AS age, (ARRAY['female', 'male'])[1 + n %% 2] AS sex,
						(10000 + 500 * (random() * 40)::int)::text AS zip, (random() * 9000)::int AS cost
						FROM generate_series(1, %[2]d) n;
					ALTER TABLE %[1]s ADD PRIMARY KEY (id);
					CREATE TABLE %[1]s_codes AS SELECT DISTINCT %[2]d::bigint * 1000 + n
						AS person, 'C' || (600 * random() ^ 3)::int AS code
						FROM generate_series(1, %[2]d) n, generate_series(1, 7) g WHERE random() < 0.9;
					ALTER TABLE %[1]s_codes ADD FOREIGN KEY (person) REFERENCES %[1]s; ANALYZE %[1]s, %[1]s_codes;
					CALL tailor.define_hierarchy('years', 'interval',
						'{"widths": [5, 10, 20, 40], "lower": 0, "upper": 119}');
					CALL tailor.define_hierarchy('places', 'prefix', '{"keep": [4, 3, 2, 1]}');
					CALL tailor.define_hierarchy('flat', 'prefix', '{"keep": []}');
					CALL tailor.protect('%[1]s', 'id', 5);
						CALL tailor.classify('%[1]s', 'age', 'quasi_identifier', hierarchy => 'years');
					CALL tailor.classify('%[1]s', 'sex', 'quasi_identifier', hierarchy => 'flat');
					CALL tailor.classify('%[1]s', 'zip', 'quasi_identifier', hierarchy => 'places');
					CALL tailor.classify('%[1]s', 'cost', 'non_sensitive');
					CALL tailor.protect('%[1]s_codes', 'person', 5);
					CALL tailor.classify('%[1]s_codes', 'person', 'direct_identifier', action => 'pseudonym');
					CALL tailor.set_valued('%[1]s_codes', 'code', m => 2);
						CALL tailor.joint('%[1]s_codes', ARRAY['sex', 'age', 'zip']);
					CALL tailor.grant_reader('%[3]s'); CALL tailor.activate('%[1]s')`, name, people, reader))
			conn, err := pgx.Connect(t.Context(), p.program(reader))
			if err != nil {
				t.Fatal(err)
			}
			question := fmt.Sprintf(
				`SELECT p.age / 10, p.sex, d.code, count(*) FROM %[1]s p JOIN %[1]s_codes d ON d.person = p.id
					WHERE d.code IN ('C1', 'C2', 'C3', 'C5', 'C8', 'C13', 'C21', 'C34', 'C55', 'C89')
						GROUP BY 1, 2, 3`,
				name,
			)
			began := time.Now()
			run(fmt.Sprintf(`CALL tailor.activate('%s_codes')`, name))
			for {
				if _, err := conn.Exec(t.Context(), question); err == nil {
					break
				}
				if time.Since(began) > 3*time.Minute {
					t.Fatal("not published")
				}
				time.Sleep(50 * time.Millisecond)
			}
			took := time.Since(began)
			least := func(c *pgx.Conn) (d time.Duration) {
				for i := range 5 {
					started := time.Now()
					if _, err := c.Exec(t.Context(), question); err != nil {
						t.Fatal(err)
					}
					if took := time.Since(started); i == 0 || took < d {
						d = took
					}
				}
				return d
			}
			run(fmt.Sprintf("VACUUM ANALYZE %[1]s_codes", name))
			released, plain := least(conn), least(direct)
			var codes int
			if err := direct.QueryRow(t.Context(), fmt.Sprintf("SELECT count(*) FROM %s_codes", name)).
				Scan(&codes); err != nil {
				t.Fatal(err)
			}
			t.Logf(
				"%d codes published in %v; ten codes by age and sex in %v, over the tables in %v",
				codes,
				took,
				released,
				plain,
			)
			if people == 50_000 && took > 30*time.Second {
				t.Errorf("published in %v", took)
			}
			if codes > 900_000 && 2*released > 3*plain {
				t.Errorf("%v, over the tables %v", released, plain)
			}
			_ = conn.Close(context.Background())
		})
	}
}
