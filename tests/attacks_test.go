package tests

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/hiatus-tailor/tailor/internal/demodata"
)

// attack is an attempt to learn more than a release shows. The files of the
// folder attacks hold one a paragraph: a line with the outcome of its last
// statement ("ok" or an SQLSTATE) and what is attempted, and a statement a line.
type attack struct {
	theme, claim, outcome string
	statements            []string
}

func readAttacks(t *testing.T) (out []attack) {
	t.Helper()
	files, err := filepath.Glob("attacks/*.sql")
	if err != nil || len(files) == 0 {
		t.Fatalf("no attacks: %v", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, paragraph := range strings.Split(strings.TrimSpace(string(text)), "\n\n") {
			lines := strings.Split(paragraph, "\n")
			outcome, claim, ok := strings.Cut(strings.TrimPrefix(lines[0], "-- "), ": ")
			if !ok || len(lines) < 2 {
				t.Fatalf("%s: %q", file, lines[0])
			}
			out = append(out, attack{
				strings.TrimSuffix(filepath.Base(file), ".sql"), claim, outcome,
				lines[1:],
			})
		}
	}
	return out
}

// world is a database with the hospital, its chains refined as far as they go.
type world struct {
	*testProxy
	victim map[string]string // what the attacker knows, by the names that attacks use
}

// quasiIdentifiers of the hospital's patients.
const quasiIdentifiers = "birth_date, age, sex, race, zip"

// twoWorlds makes two databases that differ in one thing: two people of one
// block, one of them the planted one, have each other's quasi-identifiers,
// which is to say that their payloads are swapped. Everything else is a copy:
// the rows' order, the partition, the releases. (The policy asks for k only:
// under a model that reads payloads a swap may open or close cuts further down.)
func twoWorlds(t *testing.T, user string) (a, b *world) {
	t.Helper()
	conn := makeDatabase(t, "world_a",
		`GRANT ALL ON DATABASE world_a TO dba; GRANT ALL ON SCHEMA public TO dba`)
	if err := shared.install(t.Context(), "world_a"); err != nil {
		t.Fatal(err)
	}
	mustExec(t, conn, `SET SESSION AUTHORIZATION dba`)
	mustExec(t, conn, demodata.Schema)
	if err := demodata.Fill(t.Context(), conn, 1500); err != nil {
		t.Fatal(err)
	}
	policy := strings.Replace(demodata.Policy, `CALL tailor.require(`, `-- CALL tailor.require(`, 1)
	policy = strings.Replace(policy, `CALL tailor.grant_reader(`,
		`CALL tailor.classify('public.patients', 'token', 'non_sensitive');
CALL tailor.grant_reader(`, 1)
	mustExec(t, conn, `ALTER TABLE patients ADD token uuid NOT NULL DEFAULT gen_random_uuid();
		GRANT SELECT ON zip_city TO PUBLIC;
		CREATE TABLE numbers AS SELECT n FROM generate_series(1, 200) n;
			GRANT SELECT ON numbers TO PUBLIC;`+policy)
	first := serveDatabase(t, "world_a")
	reader := connect(t, first.dsn(user))
	rowsOf(t, reader, "SELECT "+quasiIdentifiers+" FROM patients", "SELECT * FROM patients",
		"SELECT * FROM visits", "SELECT * FROM diagnoses",
		"SELECT * FROM visits v JOIN patients p ON v.patient_id = p.id")
	_ = reader.Close(t.Context())
	first.stop(t)

	mustExec(t, conn, `RESET SESSION AUTHORIZATION`)
	victim := swappable(t, conn, user)
	_ = conn.Close(t.Context())
	mustExec(t, shared.superuser(t), `CREATE DATABASE world_b TEMPLATE world_a`)
	for _, name := range []string{"world_a", "world_b"} {
		conn := connect(t, shared.cluster.SuperuserDSN(name))
		if name == "world_b" {
			swap(t, conn, victim)
		}
		// Updated rows have moved to the end; put all in their order again.
		mustExec(t, conn, `CLUSTER public.patients USING patients_pkey; ANALYZE`)
		_ = conn.Close(t.Context())
	}
	return &world{serveDatabase(t, "world_a"), victim}, &world{serveDatabase(t, "world_b"), victim}
}

func serveDatabase(t *testing.T, name string) *testProxy {
	t.Helper()
	p := shared.serve(t, "--service-dsn", shared.cluster.ServiceDSN(name))
	p.database = name
	return p
}

// swappable finds the planted person and somebody else of the same block with
// other quasi-identifiers, and all that an attacker may know of them.
func swappable(t *testing.T, conn *pgx.Conn, user string) map[string]string {
	t.Helper()
	chain := one[string](t, conn,
		`SELECT chain::text FROM tailor.chain WHERE relation = 'public.patients'::regclass`)
	v := map[string]string{
		"chain": chain, "view": "chain_" + chain,
		"epoch": one[string](t, conn, `SELECT epoch::text FROM tailor.chain WHERE chain::text = $1`,
			chain),
	}
	v["token"] = one[string](t, conn, `SELECT token::text FROM patients WHERE ssn = $1`,
		demodata.CanarySSN)
	v["other"] = one[string](t, conn, fmt.Sprintf(`
		WITH placed AS (%s) SELECT o.name::text FROM placed c JOIN placed o ON o.block = c.block
			AND o.tuple <> c.tuple
		WHERE c.name::text = $1 ORDER BY o.name LIMIT 1`, placed(t, conn, chain, "token")), v["token"])
	for _, column := range []string{"id", "name", "age", "zip", "birth_date", "sex", "diagnosis"} {
		v[column] = one[string](t, conn, `SELECT `+column+`::text FROM patients WHERE token::text = $1`,
			v["token"])
	}
	return v
}

// swap gives the two people each other's quasi-identifiers. What is stored of a block
// does not tell them apart.
func swap(t *testing.T, conn *pgx.Conn, v map[string]string) {
	t.Helper()
	for _, statement := range []string{
		fmt.Sprintf(`UPDATE public.patients a SET (%[1]s) = (b.%[2]s) FROM public.patients b
			WHERE a.token::text IN ($1, $2) AND b.token::text IN ($1, $2) AND a.token <> b.token`,
			quasiIdentifiers, strings.ReplaceAll(quasiIdentifiers, ", ", ", b.")),
	} {
		tag, err := conn.Exec(t.Context(), statement, v["token"], v["other"])
		if err != nil || tag.RowsAffected() != 2 {
			t.Fatalf("%s: %v, %d rows", statement, err, tag.RowsAffected())
		}
	}
}

// transcript is every word that one session gets, rows in an order of their own.
func (w *world) transcript(t *testing.T, user string, statements []string) (text, outcome string) {
	t.Helper()
	text, outcome, err := w.transcribe(t.Context(), user, statements)
	if err != nil {
		t.Fatal(err)
	}
	return text, outcome
}

func (w *world) transcribe(
	ctx context.Context, user string, statements []string,
) (text, outcome string, err error) {
	var out strings.Builder
	config, err := pgx.ParseConfig(w.dsn(user))
	if err != nil {
		return "", "", err
	}
	config.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) {
		fmt.Fprintf(&out, "notice %q %q\n", n.Message, n.Detail)
	}
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return "", "", err
	}
	defer func() { _ = conn.Close(ctx) }()
	var knowledge []string
	for name, value := range w.victim {
		knowledge = append(knowledge, "{"+name+"}", value)
	}
	known := strings.NewReplacer(knowledge...)
	for _, s := range statements {
		outcome = "ok"
		s = known.Replace(s)
		var results []*pgconn.Result
		if strings.HasPrefix(s, "COPY") && strings.HasSuffix(s, "TO STDOUT") {
			var copied bytes.Buffer
			_, err = conn.PgConn().CopyTo(ctx, &copied, s)
			lines := strings.Split(copied.String(), "\n")
			slices.Sort(lines)
			out.WriteString(strings.Join(lines, "\n"))
		} else {
			results, err = conn.PgConn().Exec(ctx, s).ReadAll()
		}
		for _, r := range results {
			rows := make([]string, len(r.Rows))
			for i, row := range r.Rows {
				rows[i] = fmt.Sprintf("%q", row)
			}
			slices.Sort(rows)
			for _, f := range r.FieldDescriptions {
				fmt.Fprintf(&out, "%s %d %d ", f.Name, f.DataTypeOID, f.TypeModifier)
			}
			fmt.Fprintf(&out, "%s\n%s\n", r.CommandTag, strings.Join(rows, "\n"))
		}
		if refused, ok := asRefusal(err); ok {
			outcome = refused.Code
			refused.Line, refused.Routine = 0, ""
			fmt.Fprintf(&out, "error %+v\n", *refused)
		} else if err != nil {
			return "", "", fmt.Errorf("%s: %w", s, err)
		}
	}
	return temporarySchema.ReplaceAllString(out.String(), "pg_temp"), outcome, nil
}

// transcripts runs the same in both worlds at once. outcome is the first's.
func transcripts(
	t *testing.T, a, b *world, user string, statements []string,
) (one, two, outcome string) {
	t.Helper()
	var group sync.WaitGroup
	var errs [2]error
	group.Go(func() { one, outcome, errs[0] = a.transcribe(t.Context(), user, statements) })
	group.Go(func() { two, _, errs[1] = b.transcribe(t.Context(), user, statements) })
	group.Wait()
	if err := errors.Join(errs[:]...); err != nil {
		t.Fatal(err)
	}
	return one, two, outcome
}

// temporarySchema is numbered by the server process.
var temporarySchema = regexp.MustCompile(`pg_temp_[0-9]+`)

// TestAttacksLearnNothingBeyondTheRelease is property 2: whatever is asked, and
// whatever comes of it, is the same in both worlds.
func TestAttacksLearnNothingBeyondTheRelease(t *testing.T) {
	const user = "attacker"
	direct := shared.superuser(t)
	mustExec(t, direct, `CREATE ROLE attacker LOGIN PASSWORD 'attacker'`)
	mustExec(t, direct, `CALL tailor.grant_reader('attacker')`)
	a, b := twoWorlds(t, user)
	generation := func(w *world) int {
		return one[int](t, connect(t, shared.cluster.SuperuserDSN(w.database)),
			`SELECT sum(generation) FROM tailor.chain`)
	}
	before := generation(a)
	attacks := readAttacks(t)
	for _, x := range attacks {
		t.Run(x.theme+"/"+x.claim, func(t *testing.T) {
			one, two, outcome := transcripts(t, a, b, user, x.statements)
			if one != two {
				t.Errorf("the worlds can be told apart:\n%.2000s\n%.2000s", one, two)
			}
			if outcome != x.outcome {
				t.Errorf("the last statement ends with %s, want %s\n%.600s", outcome, x.outcome, one)
			}
			for _, planted := range []string{demodata.CanaryName, demodata.CanarySSN} {
				if strings.Contains(one+two, planted) {
					t.Errorf("the answer holds %q", planted)
				}
			}
		})
	}
	if len(attacks) < 60 {
		t.Errorf("only %d attacks", len(attacks))
	}
	if after := generation(a); after != before || generation(b) != before {
		t.Errorf("the chains were not settled: generation %d, then %d", before, after)
	}
	for _, w := range []*world{a, b} {
		if log := w.log.String(); strings.Contains(log, demodata.CanarySSN) ||
			strings.Contains(log, demodata.CanaryName) {
			t.Error("the log holds a planted value")
		}
	}
	t.Run("the worlds do differ", func(t *testing.T) {
		see := []string{"SELECT token, " + quasiIdentifiers + " FROM patients ORDER BY id"}
		one, two, _ := transcripts(t, a, b, "dba", see)
		if one == two {
			t.Error("whoever may see the table itself sees no difference")
		}
	})
}

// asRefusal is the server's error inside an error.
func asRefusal(err error) (*pgconn.PgError, bool) {
	var refused *pgconn.PgError
	ok := errors.As(err, &refused)
	return refused, ok
}
