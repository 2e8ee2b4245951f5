package tests

import (
	"encoding/csv"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/hiatus-tailor/tailor/internal/refdata"
)

// adultQIDs are the quasi-identifiers of the reference workloads.
var adultQIDs = []string{
	"sex", "age", "race", "marital-status", "education", "native-country",
	"workclass",
}

// newAdult fills a database with the first rows of the reference table Adult, and
// drafts a policy: seven quasi-identifiers with the reference hierarchies, k = 5,
// occupation sensitive, income shown.
func newAdult(t *testing.T, name string, limit int) *pgx.Conn {
	t.Helper()
	f, err := os.Open(refdata.Path(t, "arx/adult/adult.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	reader := csv.NewReader(f)
	reader.Comma = ';'
	records, err := reader.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	columns := []string{"id", "token"}
	for _, c := range records[0] {
		columns = append(columns, underscored(c))
	}
	var rows [][]any
	for n, record := range records[1:min(limit+1, len(records))] {
		row := []any{n, fmt.Sprintf("a%d", n)}
		for _, v := range record {
			row = append(row, v)
		}
		rows = append(rows, row)
	}
	conn := makeDatabase(t, name, fmt.Sprintf(`CREATE TABLE adult (id int PRIMARY KEY, %s text);
		CREATE TABLE countries (country text PRIMARY KEY, initial text);
			GRANT SELECT ON countries TO PUBLIC;
		CREATE TABLE decades (age int PRIMARY KEY, decade text); GRANT SELECT ON decades TO PUBLIC`,
		strings.Join(columns[1:], " text, ")))
	if _, err := conn.CopyFrom(t.Context(), pgx.Identifier{"adult"}, columns,
		pgx.CopyFromRows(rows)); err != nil {
		t.Fatal(err)
	}
	mustExec(t, conn, `ALTER TABLE adult ALTER age TYPE int USING age::int;
		INSERT INTO countries SELECT DISTINCT native_country, left(native_country, 1) FROM adult;
		INSERT INTO decades SELECT n, n / 10 || '0s' FROM generate_series(10, 60) n; ANALYZE`)
	if err := shared.install(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	mustExec(t, conn, `CALL tailor.protect('adult', 'id', 5);
		CALL tailor.classify('adult', 'token', 'non_sensitive');
		CALL tailor.classify('adult', 'occupation', 'sensitive');
		CALL tailor.classify('adult', 'salary_class', 'non_sensitive');
		CALL tailor.grant_reader('researcher')`)
	for _, c := range adultQIDs {
		code, _, stderr := tool(t, "hierarchy", "import", "--dsn", shared.cluster.SuperuserDSN(name),
			"--name", underscored(c),
			refdata.Path(t, "arx/adult/adult_hierarchy_"+c+".csv"))
		if code != 0 {
			t.Fatalf("hierarchy of %s: exit %d, %s", c, code, stderr)
		}
		mustExec(t, conn, fmt.Sprintf(
			`CALL tailor.classify('adult', '%[1]s', 'quasi_identifier', hierarchy => '%[1]s')`,
			underscored(c)))
	}
	return conn
}

// adultRows is how many rows of Adult the tests take: all with TAILOR_SOAK=1.
func adultRows() int {
	if os.Getenv("TAILOR_SOAK") != "" {
		return 1 << 20
	}
	return 4000
}

func underscored(name string) string { return strings.ReplaceAll(name, "-", "_") }

// adultSources are what random queries ask of Adult: the table, and joins with
// tables that everybody may read.
func adultSources() []source {
	alone := source{of: "adult", token: "token", from: "adult", attributes: []attribute{
		{"sex", oneOf("Male", "Female")},
		{"age", within(17, 90)},
		{"race", oneOf("White", "Black", "Other", "*")},
		{"marital_status", oneOf("Divorced", "Never-married", "spouse present")},
		{"education", oneOf("Bachelors", "HS-grad", "Higher education", "Undergraduate")},
		{"native_country", oneOf("United-States", "Mexico", "Europe")},
		{"workclass", oneOf("Private", "State-gov", "Non-Government")},
	}}
	byCountry, byAge := alone, alone
	byCountry.from, byCountry.further = "adult JOIN countries c ON c.country = native_country",
		[]string{"initial"}
	byAge.from, byAge.further = "adult LEFT JOIN decades USING (age)", []string{
		"decade",
		"decade IS NULL",
	}
	return []source{alone, alone, byCountry, byAge}
}

// TestReadersOfAdultWhoPoolTheirAnswers has ten readers ask random queries
// and pool all answers: no class below k, none with fewer occupations than the policy
// says, and none that one query for everything would not have told apart.
func TestReadersOfAdultWhoPoolTheirAnswers(t *testing.T) {
	const occupations = 3
	direct := newAdult(t, "pooled_adult", adultRows())
	mustExec(t, direct, asMiddles(fmt.Sprintf(
		`CALL tailor.require('adult', 'l_diversity', 'occupation', %d); CALL tailor.activate('adult')`,
		occupations)))
	p := serveDatabase(t, "pooled_adult")
	conns := p.readers(t, direct, "adult_reader", 10)
	sources := adultSources()

	all := newPooled(t, direct, `SELECT token, id::text, occupation FROM adult`)
	shown := askInTurn(t, conns, queriesEach(), 1, sources, map[string]*pooled{"adult": all})
	t.Logf("%d rows in the answers", shown)
	all.assertMeets(t, "adult", model{k: k, l: occupations})

	once := all.again()
	mustExec(t, conns[0], "SET tailor.representation = 'label'")
	once.answer(t, conns[0], sources[0].everything())
	if all.classes > once.classes {
		t.Errorf("the answers tell %d classes apart, one about everything %d", all.classes, once.classes)
	}
}

// queriesEach is how many random queries each of ten readers asks who pool their answers.
func queriesEach() int {
	if soaks() {
		return 20
	}
	return 8
}
