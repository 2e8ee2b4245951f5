package tests

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/hiatus-tailor/tailor/internal/demodata"
)

// payloads is a table whose payload is swapped between rows of one block.
type payloads struct {
	table   string
	token   string   // tells rows apart; part of the payload
	swapped []string // the whole payload
	block   string   // a query for the token and all that is shown of quasi-identifiers
	subject string   // the column of the subject: pairs are of two
}

// pairs finds two rows of each of some blocks, by what a reader is shown.
func (x payloads) pairs(t *testing.T, reader, direct *pgx.Conn, blocks int) (pairs [][2]string) {
	t.Helper()
	shown := make(disclosed)
	shown.answer(t, reader, x.block)
	byLabels := make(map[string][]string)
	for token, labels := range shown {
		byLabels[strings.Join(labels, ";")] = append(byLabels[strings.Join(labels, ";")], token)
	}
	subjects := make(map[string]string)
	for _, row := range rowsOf(t, direct, fmt.Sprintf("SELECT %s, %s FROM %s", x.token, x.subject,
		x.table)) {
		token, subject, _ := strings.Cut(row, "|")
		subjects[token] = subject
	}
	for _, tokens := range byLabels {
		slices.Sort(tokens)
		for _, other := range tokens[1:] {
			if subjects[other] != subjects[tokens[0]] {
				pairs = append(pairs, [2]string{tokens[0], other})
				break
			}
		}
	}
	slices.SortFunc(pairs, func(a, b [2]string) int { return strings.Compare(a[0], b[0]) })
	return pairs[:min(blocks, len(pairs))]
}

// swap gives the two rows of each pair each other's payload.
func (x payloads) swap(t *testing.T, conn *pgx.Conn, pairs [][2]string) {
	t.Helper()
	columns := strings.Join(x.swapped, ", ")
	for _, pair := range pairs {
		tag, err := conn.Exec(t.Context(), fmt.Sprintf(
			`UPDATE %[1]s a SET (%[2]s) = (b.%[3]s) FROM (SELECT * FROM %[1]s) b
			WHERE a.%[4]s::text IN ($1, $2) AND b.%[4]s::text IN ($1, $2) AND a.%[4]s <> b.%[4]s`,
			x.table, columns, strings.ReplaceAll(columns, ", ", ", b."), x.token), pair[0], pair[1])
		if err != nil || tag.RowsAffected() != 2 {
			t.Fatalf("%s: %v, %d rows", x.table, err, tag.RowsAffected())
		}
	}
}

// swappedBeforeTheRoot protects two databases that differ in payloads only, swapped
// within blocks before any root is made, and asserts that every statement has the same
// answer in both but for the order of its rows: neither the engine nor anything behind
// it has looked at a payload. Values are middles there: those that are drawn have no
// payload to look at (anonymize.Sketch). prepared is a database with a drafted policy, which
// activate puts in force.
func swappedBeforeTheRoot(
	t *testing.T, prepared *pgx.Conn, activate string, tables []payloads, blocks int,
	statements []string,
) {
	t.Helper()
	activate = asMiddles(activate)
	database := prepared.Config().Database
	_ = prepared.Close(t.Context())
	mustExec(t, shared.superuser(t), fmt.Sprintf("CREATE DATABASE %s_swapped TEMPLATE %[1]s",
		database))
	direct := connect(t, shared.cluster.SuperuserDSN(database))
	mustExec(t, direct, activate)
	first := &world{testProxy: serveDatabase(t, database)}
	reader := connect(t, first.dsn("researcher"))

	other := connect(t, shared.cluster.SuperuserDSN(database+"_swapped"))
	for _, x := range tables {
		pairs := x.pairs(t, reader, direct, blocks)
		if len(pairs) < min(blocks, 10) {
			t.Fatalf("%s: only %d blocks in which there is something to swap", x.table, len(pairs))
		}
		t.Logf("%s: payloads of two rows swapped in each of %d blocks", x.table, len(pairs))
		x.swap(t, other, pairs)
	}
	mustExec(t, other, activate)
	second := &world{testProxy: serveDatabase(t, database+"_swapped")}
	for _, x := range tables { // the tables do differ
		var seen [2]string
		for i, conn := range []*pgx.Conn{direct, other} {
			seen[i] = one[string](t, conn, fmt.Sprintf(
				"SELECT md5(string_agg(x::text, ',' ORDER BY x::text)) FROM %s x", x.table))
		}
		if seen[0] == seen[1] {
			t.Errorf("%s is the same in both databases", x.table)
		}
	}
	told := 0
	for _, sql := range statements {
		texts := strings.Split(sql, "; ")
		one, outcome := first.transcript(t, "researcher", texts)
		two, _ := second.transcript(t, "researcher", texts)
		if outcome != "ok" {
			t.Errorf("%s: %s", sql, outcome)
		}
		one, two = chainNumber.ReplaceAllString(one, "chain"), chainNumber.ReplaceAllString(two, "chain")
		if one != two {
			told++
			if told <= 3 {
				t.Errorf("%s: the databases can be told apart: %s", sql,
					firstOther(strings.Split(one, "\n"), strings.Split(two, "\n")))
			}
		}
	}
	if told > 0 {
		t.Errorf("%d of %d statements tell the databases apart", told, len(statements))
	}
}

// chainNumber is of the table whose root happens to be made first.
var chainNumber = regexp.MustCompile(`chain \d+`)

// TestPayloadsSwappedBeforeTheRootIsMadeChangeNoAnswer swaps within blocks of the demo
// and of a family, under policies whose models do not look at sensitive values.
// (TestAttacksLearnNothingBeyondTheRelease swaps within a root that is already there.)
func TestPayloadsSwappedBeforeTheRootIsMadeChangeNoAnswer(t *testing.T) {
	t.Run("hospital", func(t *testing.T) {
		draft, active, ok := strings.Cut(demodata.Policy, "CALL tailor.activate(")
		if !ok {
			t.Fatal("the demo's policy activates nothing")
		}
		draft = strings.Replace(draft, `CALL tailor.require(`, `-- CALL tailor.require(`, 1)
		conn := makeDatabase(t, "blind_hospital", demodata.Schema)
		if err := demodata.Fill(t.Context(), conn, 1500); err != nil {
			t.Fatal(err)
		}
		if err := shared.install(t.Context(), "blind_hospital"); err != nil {
			t.Fatal(err)
		}
		mustExec(t, conn, `ALTER TABLE patients ADD token uuid NOT NULL DEFAULT gen_random_uuid(); `+
			`GRANT SELECT ON zip_city TO PUBLIC;`+draft+
			`; CALL tailor.classify('public.patients', 'token', 'non_sensitive')`)
		swappedBeforeTheRoot(t, conn, "CALL tailor.activate("+active, []payloads{{
			table: "patients", token: "token", swapped: []string{"token", "ward", "diagnosis", "cost"},
			block: "SELECT token, " + quasiIdentifiers + " FROM patients", subject: "id",
		}}, 40, []string{
			"SELECT * FROM patients", "SELECT * FROM patients WHERE age > 40 AND zip LIKE '3%'",
			"TABLE visits",
			"SELECT age, sex, count(*), sum(cost), min(diagnosis), count(DISTINCT ward) FROM patients " +
				"GROUP BY age, sex",
			"SELECT diagnosis, age, count(*) FROM patients WHERE ward <> 'surgery' GROUP BY diagnosis, " +
				"age HAVING count(*) > 1",
			"SELECT city, token, diagnosis FROM patients JOIN zip_city USING (zip)",
			"SELECT token FROM patients ORDER BY birth_date, cost, token LIMIT 50",
			"SET tailor.representation = 'value'; SELECT token, birth_date, age, zip, race FROM patients",
			"EXPLAIN (TAILOR) SELECT age, zip, diagnosis FROM patients WHERE sex = 'male'",
		})
	})
	t.Run("family", func(t *testing.T) {
		soakOnly(t)
		conn := makeDatabase(t, "blind_family", familyTables)
		if err := shared.install(t.Context(), "blind_family"); err != nil {
			t.Fatal(err)
		}
		mustExec(t, conn, strings.TrimSuffix(fmt.Sprintf(familyPolicy, k, ""), activateFamily))
		statements := []string{
			"SELECT * FROM patients", "SELECT * FROM visits", "SELECT * FROM labs",
			"SELECT * FROM deliveries",
		}
		var tables []payloads
		most := make(map[string]source)
		for _, s := range familySources() {
			statements = append(statements, s.everything())
			if len(s.attributes) >= len(most[s.of].attributes) && len(s.further) == 0 {
				most[s.of] = s
			}
		}
		for table, payload := range map[string][]string{
			"patients": {"patient_token", "diagnosis", "cost"}, "visits": {"visit_token", "reason"},
			"labs": {"lab_token", "result"}, "deliveries": {"delivery_token", "week"},
		} {
			subject := "patient_id"
			if table == "patients" {
				subject = "id"
			}
			tables = append(tables, payloads{
				table: table, token: payload[0], swapped: payload, block: most[table].everything(),
				subject: subject,
			})
		}
		swappedBeforeTheRoot(t, conn, activateFamily, tables, 20, statements)
	})
}

// TestPayloadsOfAdultSwappedBeforeTheRootIsMadeChangeNoAnswer swaps occupation and
// income within blocks of the reference table.
func TestPayloadsOfAdultSwappedBeforeTheRootIsMadeChangeNoAnswer(t *testing.T) {
	conn := newAdult(t, "blind_adult", adultRows())
	statements := []string{
		"SELECT * FROM adult", "SELECT age, occupation, count(*) FROM adult GROUP BY age, occupation",
		"SELECT race, salary_class, count(*), avg(length(occupation)) FROM adult WHERE sex = 'Male' " +
			"GROUP BY 1, 2",
	}
	for _, s := range adultSources() {
		statements = append(statements, s.everything())
	}
	swappedBeforeTheRoot(t, conn, `CALL tailor.activate('adult')`, []payloads{{
		table: "adult", token: "token", swapped: []string{"token", "occupation", "salary_class"},
		block: adultSources()[0].everything(), subject: "id",
	}}, 200, statements)
}
