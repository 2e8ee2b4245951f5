package tests

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// singles are statements about one table each, to be compared beside joins.
var singles = []string{
	"SELECT age, sex, diagnosis, cost FROM patients",
	`SELECT birth_date, zip, "Odd Name", diagnosis FROM patients`,
	"SELECT day, kind, note, fee FROM encounters",
	"SELECT kind, sum(fee), min(note) FROM encounters GROUP BY kind",
	"SELECT ward, count(*) FROM stays GROUP BY ward",
	"SELECT zip, sum(cost), count(*) FROM patients GROUP BY zip",
}

// differing swaps the payloads of two rows of one block which differ in their
// quasi-identifiers and belong to two subjects, wherever they are stored.
func differing(t *testing.T, conn *pgx.Conn, table, key string, payload ...string) {
	t.Helper()
	chain := one[int](t, conn, `SELECT chain FROM tailor.chain WHERE relation = $1::text::regclass`,
		table)
	var one, two string
	if err := conn.QueryRow(t.Context(), fmt.Sprintf(`
		WITH placed AS (%s) SELECT a.name, b.name FROM placed a JOIN placed b ON a.block = b.block
			AND a.tuple <> b.tuple AND a.subject <> b.subject
		ORDER BY md5(a.name || b.name) LIMIT 1`, placed(t, conn, fmt.Sprint(chain), key))).
		Scan(&one, &two); err != nil {
		t.Fatal(err)
	}
	columns := strings.Join(payload, ", ")
	for _, relation := range []string{fmt.Sprintf("tailor_store.chain_%d_row", chain), table} {
		tag, err := conn.Exec(t.Context(), fmt.Sprintf(
			`UPDATE %[1]s a SET (%[2]s) = (b.%[3]s) FROM %[1]s b
			WHERE a.%[4]s IN ($1, $2) AND b.%[4]s IN ($1, $2) AND a.%[4]s <> b.%[4]s`,
			relation, columns, strings.ReplaceAll(columns, ", ", ", b."), key), one, two)
		if err != nil || tag.RowsAffected() != 2 {
			t.Fatalf("%s: %v, %d rows", relation, err, tag.RowsAffected())
		}
	}
}

// TestJoinsDoNotTellPayloadsApart is property 2 over both chains: a child's
// payloads swapped within a block of the joined relation, or a parent's within
// a block of the parent's, change no answer, whatever is joined, asked of one
// table or refused.
func TestJoinsDoNotTellPayloadsApart(t *testing.T) {
	c := newClinic(t, "joins_world", 5, 5, crowd)
	statements := slices.Clone(singles)
	for _, outcome := range []string{"release", "refuse"} {
		texts := joinCorpus(t, outcome)
		for _, name := range slices.Sorted(maps.Keys(texts)) {
			if !strings.Contains(name, "window") { // ranks among ties, of which LIMIT tells nothing
				statements = append(statements, strings.TrimSpace(texts[name]))
			}
		}
	}
	mustExec(t, c.direct, asMiddles("CALL tailor.activate('patients'); CALL "+
		"tailor.activate('encounters')"))
	first := &world{testProxy: c.testProxy}
	first.transcript(t, "researcher", statements)
	settled, _ := first.transcript(t, "researcher", statements)
	c.stop(t)
	_ = c.direct.Close(t.Context())
	admin := shared.superuser(t)
	for name, swap := range map[string]func(*pgx.Conn){
		"a child's payloads": func(conn *pgx.Conn) {
			differing(t, conn, "encounters", "note", "note", "fee")
		},
		"a parent's payloads": func(conn *pgx.Conn) {
			differing(t, conn, "patients", "diagnosis", "diagnosis", "cost")
		},
	} {
		t.Run(name, func(t *testing.T) {
			database := "joins_other_" + strings.Fields(name)[1][:5]
			mustExec(t, admin, fmt.Sprintf(`CREATE DATABASE %s TEMPLATE joins_world`, database))
			conn := connect(t, shared.cluster.SuperuserDSN(database))
			before := one[string](t, conn,
				`SELECT md5(string_agg(p.id || diagnosis || coalesce(note, ''), ',' ORDER BY p.id, e.id)) `+
					`FROM patients p LEFT JOIN encounters e ON p.id = patient_id`)
			swap(conn)
			if before == one[string](t, conn,
				`SELECT md5(string_agg(p.id || diagnosis || coalesce(note, ''), ',' ORDER BY p.id, e.id)) `+
					`FROM patients p LEFT JOIN encounters e ON p.id = patient_id`) {
				t.Fatal("the worlds do not differ")
			}
			other := &world{testProxy: serveDatabase(t, database)}
			text, _ := other.transcript(t, "researcher", statements)
			if text != settled {
				one, two := strings.Split(settled, "\n"), strings.Split(text, "\n")
				for i := range min(len(one), len(two)) {
					if one[i] != two[i] {
						t.Fatalf("the worlds can be told apart at line %d of %d:\n%.400s\n%.400s", i, len(one),
							one[i], two[i])
					}
				}
				t.Fatal("one world says more than the other")
			}
		})
	}
}
