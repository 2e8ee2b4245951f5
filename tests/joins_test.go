package tests

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// TestWhereNothingIsGeneralizedJoinsArePostgreSQLsOwn runs the joins of the
// planner's corpus through the proxy and directly.
func TestWhereNothingIsGeneralizedJoinsArePostgreSQLsOwn(t *testing.T) {
	c := newClinic(t, "joins_twins", 2, 2, twins)
	labels := connect(t, c.dsn("researcher"))
	values := connect(t, c.dsn("researcher"))
	rowsOf(t, values, "SET tailor.representation = 'value'")
	rowsOf(t, labels, `SELECT p.birth_date, p.age, p.sex, p.zip, p."Odd Name", e.day, e.kind `+
		`FROM patients p JOIN encounters e ON p.id = e.patient_id`,
		`SELECT p.birth_date, p.age, p.sex, p.zip, p."Odd Name" FROM patients p JOIN stays s USING (id)`,
		`SELECT sex FROM patients`)
	compared := 0
	for name, text := range joinCorpus(t, "release") {
		if strings.HasPrefix(name, "star") {
			continue // over columns that a release has not
		}
		compared++
		want := answerOf(t, c.direct, name, text, true)
		if strings.Contains(want, "error ") || strings.Contains(want, "SELECT 0") {
			t.Errorf("%s compares nothing: %s", name, want)
		}
		if got := answerOf(t, values, name, text, true); got != want {
			t.Errorf("%s: %s\ngot\n%.600s\nwant\n%.600s", name, text, got, want)
		}
		if got, want := answerOf(t, labels, name, text, false),
			answerOf(t, c.direct, name, text, false); got != want {
			t.Errorf("%s as labels: %s\ngot\n%.600s\nwant\n%.600s", name, text, got, want)
		}
	}
	t.Logf("%d joined statements compared", compared)
	if compared < 25 {
		t.Errorf("only %d statements", compared)
	}
}

// shownRow is what answers have shown of one row of a table: for each column,
// the labels so far.
type shownRow map[string][]string

// askAtRandom asks for columns of joins and of the child alone in one chain,
// and of the parent alone in another, and keeps what each row was shown with.
func askAtRandom(
	t *testing.T, conn *pgx.Conn, r *rand.Rand, encounters, people map[string]shownRow,
) {
	t.Helper()
	ofParent := []string{"birth_date", "age", "sex", "zip", `"Odd Name"`}
	ofChild := []string{"day", "kind"}
	pick := func(from []string, least int) []string {
		from = slices.Clone(from)
		r.Shuffle(len(from), func(i, j int) { from[i], from[j] = from[j], from[i] })
		return from[:least+r.IntN(len(from)-least+1)]
	}
	var list []string
	into, sql := encounters, ""
	switch r.IntN(5) {
	case 0:
		list = pick(ofChild, 1)
		sql = "SELECT note, " + strings.Join(list, ", ") + " FROM encounters"
	case 1:
		into, list = people, pick(ofParent, 1)
		sql = "SELECT diagnosis, " + strings.Join(list, ", ") + " FROM patients"
	default:
		for _, c := range pick(ofParent, 1) {
			list = append(list, "p."+c)
		}
		for _, c := range pick(ofChild, 0) {
			list = append(list, "e."+c)
		}
		form := []string{
			"patients p JOIN encounters e ON p.id = e.patient_id",
			"encounters e LEFT JOIN patients p ON e.patient_id = p.id",
			"patients p, encounters e WHERE p.id = e.patient_id",
		}[r.IntN(3)]
		sql = "SELECT e.note, " + strings.Join(list, ", ") + " FROM " + form
	}
	rows, err := conn.Query(t.Context(), sql, pgx.QueryExecModeSimpleProtocol)
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	defer rows.Close()
	for rows.Next() {
		raw := rows.RawValues()
		row := into[string(raw[0])]
		if row == nil {
			t.Fatalf("%s: a row that is not in the table: %q", sql, raw[0])
		}
		for i, v := range raw[1:] {
			column := strings.TrimPrefix(list[i], "e.")
			row[column] = append(row[column], string(v))
		}
	}
	if err := rows.Err(); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// histories numbers what each row was shown with in one column, over all
// answers: rows with the same number cannot be told apart by it.
func histories(rows []shownRow, column string) []int {
	numbers := make(map[string]int)
	out := make([]int, len(rows))
	for i, row := range rows {
		shown := fmt.Sprintf("%q", row[column])
		if _, known := numbers[shown]; !known {
			numbers[shown] = len(numbers)
		}
		out[i] = numbers[shown]
	}
	return out
}

// assertCrowded asserts that each set of rows which cannot be told apart by
// any set of columns, over all answers, is of at least k subjects. It returns
// how many sets all columns together make.
func assertCrowded(
	t *testing.T, rows map[string]shownRow, subjectOf map[string]string, k int, columns ...string,
) (classes int) {
	t.Helper()
	var shown []shownRow
	var subject []string
	for name, row := range rows {
		shown, subject = append(shown, row), append(subject, subjectOf[name])
	}
	var shownBy [][]int
	for _, c := range columns {
		shownBy = append(shownBy, histories(shown, c))
	}
	for set := 1; set < 1<<len(columns); set++ {
		subjects := make(map[[8]int]map[string]bool)
		for row, of := range subject {
			var key [8]int // by column, 0 for those outside the set
			for c := range columns {
				if set&(1<<c) != 0 {
					key[c] = 1 + shownBy[c][row]
				}
			}
			if subjects[key] == nil {
				subjects[key] = make(map[string]bool)
			}
			subjects[key][of] = true
		}
		for key, of := range subjects {
			if len(of) < k {
				t.Errorf("a class of %d subjects, k is %d: %v of %q", len(of), k, key, columns)
			}
		}
		classes = len(subjects)
	}
	return classes
}

// TestJoinedAnswersTogetherHoldKSubjects is the independent checker for joins.
// It counts distinct patients by the tables themselves, and knows of chains,
// blocks and epochs nothing.
func TestJoinedAnswersTogetherHoldKSubjects(t *testing.T) {
	const k, kOfEncounters = 6, 4 // a join has the greater
	c := newClinic(t, "joins_crowd", k, kOfEncounters, crowd)
	subjectOf := make(map[string]string)
	encounters, people := make(map[string]shownRow), make(map[string]shownRow)
	var name, subject string
	rows, err := c.direct.Query(t.Context(),
		`SELECT note, 'patient ' || patient_id FROM encounters UNION ALL SELECT diagnosis, diagnosis `+
			`FROM patients`)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := pgx.ForEachRow(rows, []any{&name, &subject}, func() error {
		subjectOf[name] = subject
		if name == subject {
			people[name] = shownRow{}
		} else {
			encounters[name] = shownRow{}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(2) {
		conn := connect(t, c.dsn(c.admit(t, fmt.Sprintf("joiner_%d", seed))))
		r := rand.New(rand.NewPCG(seed, 6))
		for _, rows := range []map[string]shownRow{encounters, people} {
			for _, row := range rows {
				clear(row)
			}
		}
		for range 20 {
			askAtRandom(t, conn, r, encounters, people)
		}
		all := []string{"p.birth_date", "p.age", "p.sex", "p.zip", `p."Odd Name"`, "day", "kind"}
		joined := assertCrowded(t, encounters, subjectOf, k, all...)
		alone := assertCrowded(t, people, subjectOf, k, "birth_date", "age", "sex", "zip", `"Odd Name"`)
		if joined < 10 || alone < 10 {
			t.Errorf("answers told %d classes of encounters and %d of patients apart: too few to check "+
				"anything", joined, alone)
		}
		t.Logf("reader %d: %d classes of joined rows, %d of patients", seed, joined, alone)
	}
}

// TestJoinedAnswersKeepWhatTheyCount: rows are neither lost nor multiplied, and
// each label covers the value behind it.
func TestJoinedAnswersKeepWhatTheyCount(t *testing.T) {
	c := newClinic(t, "joins_counts", 5, 5, crowd)
	conn := connect(t, c.dsn("researcher"))
	for _, sql := range []string{
		"SELECT count(*), sum(e.fee) FROM patients p JOIN encounters e ON p.id = e.patient_id",
		"SELECT count(*), sum(e.fee) FROM encounters e LEFT JOIN patients p ON p.id = e.patient_id",
		"SELECT count(*), sum(fee) FROM encounters e",
		"SELECT count(*) FROM patients p JOIN stays s USING (id)",
	} {
		if got, want := answerOf(t, conn, "", sql, true),
			answerOf(t, c.direct, "", sql, true); got != want {
			t.Errorf("%s: got %s, want %s", sql, got, want)
		}
	}
	truth := make(map[string][]string)
	rows, err := c.direct.Query(t.Context(),
		`SELECT e.note, p.age::text, p.zip, e.day::text FROM patients p JOIN encounters e `+
			`ON p.id = e.patient_id`)
	if err != nil {
		t.Fatal(err)
	}
	v := make([]string, 4)
	if _, err := pgx.ForEachRow(rows, []any{&v[0], &v[1], &v[2], &v[3]}, func() error {
		truth[v[0]] = slices.Clone(v[1:])
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	rows, err = conn.Query(t.Context(),
		`SELECT e.note, p.age, p.zip, e.day FROM patients p JOIN encounters e ON p.id = e.patient_id`,
		pgx.QueryExecModeSimpleProtocol)
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	if _, err := pgx.ForEachRow(rows, []any{&v[0], &v[1], &v[2], &v[3]}, func() error {
		seen++
		for i, label := range v[1:] {
			if !covers(label, truth[v[0]][i]) {
				t.Errorf("column %d: a label does not cover the value behind it", i)
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if seen != len(truth) {
		t.Errorf("%d rows of %d", seen, len(truth))
	}
}

// refusedAs runs a statement that must fail, and returns the error.
func refusedAs(t *testing.T, conn *pgx.Conn, sql, code string) *pgconn.PgError {
	t.Helper()
	_, err := conn.Exec(t.Context(), sql, pgx.QueryExecModeSimpleProtocol)
	var refused *pgconn.PgError
	if !errors.As(err, &refused) {
		t.Errorf("%s: %v, want %s", sql, err, code)
		return &pgconn.PgError{}
	}
	if refused.Code != code {
		t.Errorf("%s: %s %s, want %s", sql, refused.Code, refused.Message, code)
	}
	return refused
}
