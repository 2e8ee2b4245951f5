package main

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
)

// Real clients read a protected table through tailor, each by a program in
// testdata/clients that does what its users do. A program prints a line for each row of
// an answer: the name of a probe, a tab, and the fields with tabs between, made from the
// client's own typed values. What it prints must be what pgx reads of the same release.

// people makes the protected table that the clients read.
//
//go:embed testdata/clients/people.sql
var people string

// reader reads it; the password is the name.
const reader = "researcher"

// columns are those that a reader is shown, with their types, in order.
var columns = [][2]string{
	{"age", "integer"},
	{"height", "smallint"},
	{"weight", "numeric"},
	{"born", "date"},
	{"member", "boolean"},
	{"sex", "text"},
	{"zip", "text"},
	{"visits", "bigint"},
	{"cost", "numeric"},
	{"score", "double precision"},
	{"admitted", "timestamp"},
	{"consents", "boolean"},
	{"diagnosis", "text"},
}

// probes are what clients are asked for, in the words of pgx.
var probes = map[string]string{
	"rows": "SELECT age, height, weight, born, member, sex, zip, visits, cost, score, admitted, " +
		"consents, " +
		"diagnosis FROM people",
	"filter": "SELECT age, zip FROM people WHERE age >= 65 AND sex = 'female'",
	"groups": "SELECT sex, count(*), sum(age), min(born), max(cost) FROM people GROUP BY sex",
	"join":   "SELECT city, count(*) FROM people LEFT JOIN postcodes USING (zip) GROUP BY city",
	"labels": "SELECT tailor.label(age), tailor.label(born), tailor.label(zip), diagnosis FROM people",
}

// client is a program of testdata/clients.
type client struct {
	name    string
	command []string
	probes  string // that it must print, with spaces between
}

const python = "/usr/bin/python3"

// all are the probes of clients that are no terminals.
const all = "types rows filter groups join"

var clients = []client{
	{"psycopg 3", []string{python, "psycopg3.py"}, all},
	{"pandas, SQLAlchemy", []string{python, "sqlalchemy_pandas.py"}, all},
	{"R, dbplyr", []string{"Rscript", "--vanilla", "dbplyr.R"}, all},
	{"JDBC, text", []string{"java", "-cp", jdbc, "Jdbc.java", "0"}, all},
	{"JDBC, binary", []string{"java", "-cp", jdbc, "Jdbc.java", "-1"}, all},
	{"psqlODBC", []string{python, "odbc.py", "0"}, all},
	{"psqlODBC, cursors", []string{python, "odbc.py", "1"}, all},
	{"ogr2ogr", []string{python, "ogr.py"}, all},
	{"LibreOffice", []string{python, "libreoffice.py"}, all},
	{"postgres_fdw", []string{python, "fdw.py"}, all},
	{"knex", []string{"node", "knex.cjs"}, all},
	{"Sequelize", []string{"node", "sequelize.cjs"}, all},
	{"TypeORM", []string{"node", "typeorm.cjs"}, all},
	{"drizzle", []string{"node", "drizzle.cjs"}, "rows filter groups join"},
	{"Cube", []string{"node", "cube.cjs"}, all},
	{"pgcli", []string{python, "terminal.py"}, "labels join"},
}

const jdbc = "/usr/share/java/postgresql.jar"

// npmPackages are what Node's clients are made of.
var npmPackages = []string{
	"pg@8.23.1", "knex@3.3.0", "sequelize@6.37.8", "typeorm@1.1.1", "reflect-metadata@0.2.2",
	"drizzle-orm@0.45.4", "@cubejs-backend/postgres-driver@1.7.43",
}

// clientsSuite runs every client on a database of its own, prints a table of what each
// read, and says whether all of it is right.
func clientsSuite(ctx context.Context, s *stand, verbose bool) (same bool, err error) {
	serving, port, err := s.protect(ctx, "clients", people)
	if err != nil {
		return false, err
	}
	defer end(serving)
	expected, err := expectedAnswers(ctx, port)
	if err != nil {
		return false, err
	}
	kinds := strings.Fields(all + " labels")
	fmt.Printf("%-20s %-32s %s\n", "client", "version", columnHeads(kinds))
	same = true
	var missing error
	for _, c := range clients {
		got, version, err := c.run(ctx, s, port)
		if errors.Is(err, errNotObtained) {
			fmt.Printf("%-20s %v\n", c.name, err)
			missing = errNotObtained
			continue
		}
		var faults []string
		if err != nil {
			faults = append(faults, fmt.Sprintf("%v", err))
		}
		var cells []string
		for _, kind := range kinds {
			if !slices.Contains(strings.Fields(c.probes), kind) {
				cells = append(cells, fmt.Sprintf("%-7s", "-"))
				continue
			}
			outcome := "same"
			if fault := differs(got[kind], expected[kind]); fault != "" {
				outcome = "DIFFERS"
				faults = append(faults, kind+": "+fault)
			}
			cells = append(cells, fmt.Sprintf("%-7s", outcome))
		}
		fmt.Printf("%-20s %-32s %s\n", c.name, version, strings.Join(cells, " "))
		for _, fault := range faults {
			same = false
			fmt.Println("  " + fault)
		}
		if verbose {
			for _, kind := range kinds {
				first := slices.Concat(got[kind], []string{""})[0]
				fmt.Printf("  %s: %d lines, the first: %q\n", kind, len(got[kind]), first)
			}
		}
	}
	return same, missing
}

// columnHeads are the probes above their outcomes.
func columnHeads(kinds []string) string {
	var out strings.Builder
	for _, kind := range kinds {
		fmt.Fprintf(&out, "%-8s", kind)
	}
	return strings.TrimSpace(out.String())
}

// run runs the program and returns its lines by their probes, sorted.
func (c client) run(
	ctx context.Context, s *stand, port string,
) (answers map[string][]string, version string, err error) {
	environment := append(environment(port, s.database), "PGUSER="+reader, "PGPASSWORD="+reader,
		"TZ=UTC", "LC_ALL=C.UTF-8", "TAILOR_COMPAT_DIR="+s.dir, "TAILOR_COMPAT_DIRECT="+s.direct)
	if c.command[0] == "node" {
		args := slices.Concat([]string{"npm-clients"}, npmPackages)
		folder, err := obtained(ctx, "scripts/npm-packages", args...)
		if err != nil {
			return nil, "", err
		}
		environment = append(environment, "NODE_PATH="+folder)
	}
	if _, err := exec.LookPath(c.command[0]); err != nil {
		return nil, "", fmt.Errorf("%w: %w", errNotObtained, err)
	}
	command := exec.CommandContext(ctx, c.command[0], c.command[1:]...)
	command.Dir = "tools/compat/testdata/clients"
	command.Env = environment
	var said bytes.Buffer
	command.Stderr = &said
	output, err := command.Output()
	if err != nil {
		err = fmt.Errorf("%w: %s", err, strings.TrimSpace(said.String()))
	}
	answers = make(map[string][]string)
	for line := range strings.Lines(string(output)) {
		fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if fields[0] == "version" && len(fields) == 2 {
			version = fields[1]
			continue
		}
		answers[fields[0]] = append(answers[fields[0]], canonical(fields[1:]))
	}
	for _, lines := range answers {
		slices.Sort(lines)
	}
	return answers, version, err
}

// canonical joins fields, numbers without zeros that say nothing: clients print 12.50 as
// 12.5, and a double of it is the same number.
func canonical(fields []string) string {
	for i, field := range fields {
		if strings.ContainsAny(field, ".eE") {
			if number, err := strconv.ParseFloat(field, 64); err == nil {
				fields[i] = strconv.FormatFloat(number, 'f', -1, 64)
			}
		}
	}
	return strings.Join(fields, "\t")
}

// expectedAnswers are what pgx reads through tailor, as text, by probes.
func expectedAnswers(ctx context.Context, port string) (map[string][]string, error) {
	conn, err := pgx.Connect(ctx, fmt.Sprintf(
		"host=127.0.0.1 port=%s user=%[2]s password=%[2]s dbname=clients sslmode=disable", port, reader))
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close(ctx) }()
	out := make(map[string][]string)
	for _, c := range columns {
		out["types"] = append(out["types"], c[0]+"\t"+c[1])
	}
	for probe, sql := range probes {
		result := conn.PgConn().ExecParams(ctx, sql, nil, nil, nil, nil).Read()
		if result.Err != nil {
			return nil, fmt.Errorf("%s: %w", probe, result.Err)
		}
		for _, row := range result.Rows {
			var fields []string
			for _, value := range row {
				field := "NULL"
				if value != nil {
					field = string(value)
				}
				fields = append(fields, field)
			}
			out[probe] = append(out[probe], canonical(fields))
		}
	}
	for _, lines := range out {
		slices.Sort(lines)
	}
	return out, nil
}

// differs says how two sorted lists of lines differ, empty if they do not.
func differs(got, want []string) string {
	if slices.Equal(got, want) {
		return ""
	}
	if len(got) == 0 {
		return "nothing was read"
	}
	for i, line := range want {
		if i == len(got) || got[i] != line {
			read := "the end"
			if i < len(got) {
				read = strconv.Quote(got[i])
			}
			return fmt.Sprintf("%d lines, expected %d; read %s, expected %q",
				len(got), len(want), read, line)
		}
	}
	return fmt.Sprintf("%d lines, expected %d; read also %q", len(got), len(want), got[len(want)])
}
