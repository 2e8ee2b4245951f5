package tests

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// labelled adds what labels an answer shows of people, by column. Which of them it has is
// decided by values, which are drawn: it tells nothing of a person.
func (d disclosed) labelled(t *testing.T, conn *pgx.Conn, sql string) {
	t.Helper()
	rows, err := conn.Query(t.Context(), sql, pgx.QueryExecModeSimpleProtocol)
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	defer rows.Close()
	for rows.Next() {
		raw := rows.RawValues()
		for i, v := range raw[1:] {
			shown := fmt.Sprintf("%s=%s", rows.FieldDescriptions()[i+1].Name, v)
			if of := d[string(raw[0])]; !slices.Contains(of, shown) {
				of = append(of, shown)
				slices.Sort(of)
				d[string(raw[0])] = of
			}
		}
	}
	if err := rows.Err(); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// TestReadersWhoPoolAllTheirAnswersFindNoClassBelowK has ten readers ask twenty
// queries each, of random quasi-identifiers in the order of chance, with conditions
// and joins, and lays all the answers beside each other, person by person.
func TestReadersWhoPoolAllTheirAnswersFindNoClassBelowK(t *testing.T) {
	p, direct := shared.serve(t), shared.superuser(t)
	rng := rand.New(rand.NewPCG(7, 11))
	columns := strings.Split(quasiIdentifiers, ", ")
	pick := func(list []string, n int) []string {
		list = slices.Clone(list)
		rng.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
		return list[:n]
	}
	pooled := make(disclosed)
	pooled.labelled(t, connect(t, p.dsn("researcher")),
		"SELECT token, "+quasiIdentifiers+" FROM patients")
	for reader := range 10 {
		name := fmt.Sprintf("pooling_%d", reader)
		mustExec(t, direct,
			fmt.Sprintf(`CREATE ROLE %[1]s LOGIN PASSWORD '%[1]s'; CALL tailor.grant_reader('%[1]s')`, name))
		conn := connect(t, p.dsn(name))
		for range 20 {
			sql := "SELECT token, " + strings.Join(pick(columns, 1+rng.IntN(len(columns))), ", ") +
				" FROM patients"
			switch rng.IntN(4) {
			case 0:
				sql += fmt.Sprintf(" WHERE age BETWEEN %d AND %d", rng.IntN(60), 40+rng.IntN(60))
			case 1:
				sql += fmt.Sprintf(" WHERE sex = '%s' AND zip LIKE '%d%%'",
					pick([]string{"male", "female"}, 1)[0], 1+rng.IntN(9))
			case 2:
				sql = "SELECT token, sex, age FROM patients JOIN zip_city USING (zip)"
			}
			pooled.labelled(t, conn, sql)
		}
	}
	if least := pooled.smallestClass(); least < k || len(pooled) != patients {
		t.Errorf("%d people in classes of %d and more, want all %d in classes of %d", len(pooled), least,
			patients, k)
	}
}

// TestNoQuestionChangesALaterAnswer asks what drivers and others ask, and compares
// answers to the byte.
func TestNoQuestionChangesALaterAnswer(t *testing.T) {
	p := shared.serve(t)
	name := shared.reader(t)
	conn, other := connect(t, p.dsn(name)), connect(t, p.dsn("researcher"))
	queries := []string{
		"SELECT token, age, zip FROM patients ORDER BY token",
		"SELECT age, count(*), avg(cost) FROM patients GROUP BY age ORDER BY age",
		"SELECT city, count(*) FROM patients JOIN zip_city USING (zip) GROUP BY city ORDER BY city",
	}
	answers := func(conn *pgx.Conn) (out []string) {
		for _, sql := range queries {
			out = append(out, strings.Join(rowsOf(t, conn, sql), "\n"))
		}
		return out
	}
	before := answers(conn)
	for i, probe := range []string{
		"SELECT * FROM patients WHERE false", "SELECT birth_date, race, sex FROM patients LIMIT 0",
		"EXPLAIN SELECT birth_date FROM patients",
		"EXPLAIN (TAILOR) SELECT * FROM patients", "SELECT * FROM patients",
		"SELECT race, birth_date FROM patients WHERE zip = '10115'",
	} {
		for _, asks := range []*pgx.Conn{conn, other} {
			rowsOf(t, asks, probe)
			if _, err := asks.Prepare(t.Context(), fmt.Sprint("probe ", i), strings.TrimPrefix(probe,
				"EXPLAIN (TAILOR) ")); err != nil {
				t.Fatalf("%s: %v", probe, err)
			}
		}
	}
	for reader, conn := range map[string]*pgx.Conn{"the same reader": conn, "another": other} {
		if after := answers(conn); !slices.Equal(before, after) {
			t.Errorf("to %s the answers are others", reader)
		}
	}
}
