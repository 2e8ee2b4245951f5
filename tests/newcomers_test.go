package tests

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// hospitalSources are what random queries ask of the demo's tables.
func hospitalSources() []source {
	patients := source{of: "patients", token: "token", from: "patients", attributes: []attribute{
		{"birth_date", since(1925, 2020)},
		{"age", within(0, 100)},
		{"sex", oneOf("female", "male")},
		{"race", oneOf("asian", "black", "white")},
		{"zip", startsWith("123456789")},
	}}
	cities := patients
	cities.from, cities.further = "patients JOIN zip_city USING (zip)", []string{"city"}
	return []source{patients, cities}
}

// askOnce is a random query of somebody who asks nothing else.
func askOnce(rng *rand.Rand) string {
	sources := hospitalSources()
	s := sources[rng.IntN(len(sources))]
	name := s.attributes[rng.IntN(len(s.attributes))].name
	switch rng.IntN(8) {
	case 0:
		return fmt.Sprintf("SELECT %s, count(*), avg(cost) FROM %s GROUP BY 1", name, s.from)
	case 1:
		return "EXPLAIN (TAILOR) " + s.draw(rng)
	case 2:
		return "SELECT code, count(*) FROM diagnoses GROUP BY code"
	case 3:
		return "SELECT count(*), sum(cost) FROM visits"
	case 4:
		return "SELECT * FROM patients WHERE " + name + " " + "IS NULL LIMIT 0"
	default:
		return s.draw(rng) + " LIMIT 40"
	}
}

// stored says what lies in a schema: of each table the bytes of all its forks, indexes
// and TOAST, and a digest of its rows in their order.
func stored(t *testing.T, direct *pgx.Conn, schema, except string) (bytes int64, tables []string) {
	t.Helper()
	for _, name := range rowsOf(t, direct, fmt.Sprintf(`SELECT oid::regclass FROM pg_class
		WHERE relnamespace = '%s'::regnamespace AND relkind = 'r' AND relname !~ '%s' ORDER BY 1`, schema,
		except)) {
		size := one[int64](t, direct, `SELECT pg_total_relation_size($1::text::regclass)`, name)
		digest := one[string](t, direct,
			`SELECT coalesce(md5(string_agg(t::text, ',' ORDER BY ctid)), '') FROM `+name+` t`)
		bytes += size
		tables = append(tables, fmt.Sprint(name, " ", size, " ", digest))
	}
	return bytes, tables
}

// settle vacuums what was just made, so that nobody else does later: that would add
// maps of free space and of what is visible.
func settle(t *testing.T, direct *pgx.Conn, schema string) {
	t.Helper()
	for _, name := range rowsOf(t, direct, fmt.Sprintf(`SELECT oid::regclass FROM pg_class
		WHERE relnamespace = '%s'::regnamespace AND relkind = 'r'`, schema)) {
		mustExec(t, direct, "VACUUM "+name)
	}
}

// TestNewReaders is about readers who have never asked before, many of them: on a stand
// of its own, for all these roles.
func TestNewReaders(t *testing.T) {
	s, _ := ownStand(t, "newcomers")
	t.Run("many change no later answer", func(t *testing.T) { changeNoLaterAnswer(t, s) })
	t.Run("the first query is planned at once", func(t *testing.T) { arePlannedAtOnce(t, s) })
}

// changeNoLaterAnswer has one reader ask before and after
// probes that read nothing, and after the random queries of many others: every
// answer has the same bytes, and the store of releases, too.
func changeNoLaterAnswer(t *testing.T, s *testCluster) {
	const workers = 16
	others := 200
	if soaks() {
		others = 1000
	}
	direct := s.superuser(t)
	p := s.serve(t)
	conn := connect(t, p.dsn(s.reader(t)))
	queries := []string{
		"SELECT * FROM patients", "SELECT token, age, zip, race FROM patients ORDER BY token",
		"SELECT age, sex, count(*), avg(cost) FROM patients GROUP BY age, sex ORDER BY age, sex",
		"SELECT city, count(*) FROM patients JOIN zip_city USING (zip) GROUP BY city ORDER BY city",
		"SELECT * FROM visits", "SELECT * FROM diagnoses",
		"EXPLAIN (TAILOR) SELECT age, zip FROM patients WHERE sex = 'male'",
	}
	ask := func() (answers []string) {
		for _, sql := range queries {
			answers = append(answers, strings.Join(rowsOf(t, conn, sql), "\n"))
		}
		return answers
	}
	before := ask()
	same := func(after string) {
		t.Helper()
		for i, answer := range ask() {
			if answer != before[i] {
				t.Errorf("after %s the answer to %q is another: %s", after, queries[i],
					firstOther(strings.Split(answer, "\n"), strings.Split(before[i], "\n")))
			}
		}
	}
	settle(t, direct, "tailor_store")
	sizeBefore, storeBefore := stored(t, direct, "tailor_store", "^$")
	_, catalogBefore := stored(t, direct, "tailor", "^audit")

	other := connect(t, p.dsn("researcher"))
	for _, asks := range []*pgx.Conn{conn, other} {
		rowsOf(t, asks, "SELECT * FROM patients WHERE false",
			"SELECT birth_date, race FROM patients LIMIT 0", "SELECT * FROM visits WHERE false",
			"EXPLAIN SELECT sex, birth_date FROM patients",
			"EXPLAIN (TAILOR) SELECT zip, race, birth_date FROM patients",
			"EXPLAIN (TAILOR) SELECT * FROM visits")
		for i, sql := range []string{
			"SELECT * FROM patients",
			"SELECT race, zip FROM patients WHERE age = $1", "SELECT * FROM diagnoses",
		} {
			if _, err := asks.PgConn().Prepare(t.Context(), fmt.Sprint("described ", i), sql,
				nil); err != nil {
				t.Fatalf("%s: %v", sql, err)
			}
		}
	}
	same("probes")

	began := time.Now()
	names := admitMany(t, direct, "newcomer", others)
	t.Logf("%d readers made in %v", others, time.Since(began).Round(time.Millisecond))
	rng := rand.New(rand.NewPCG(5, 22))
	asked := make([]string, others)
	for i := range asked {
		asked[i] = askOnce(rng)
	}
	began = time.Now()
	inParallel(others, workers, func(i int) {
		if err := asksOnce(p.dsnOf(names[i], "newcomer"), asked[i]); err != nil {
			t.Errorf("%s: %v", asked[i], err)
		}
	})
	t.Logf("their queries took %v", time.Since(began).Round(time.Millisecond))
	same("the queries of many others")
	sizeAfter, storeAfter := stored(t, direct, "tailor_store", "^$")
	if sizeAfter != sizeBefore || !slices.Equal(storeAfter, storeBefore) {
		t.Errorf("the store has %d bytes, and had %d: %s", sizeAfter, sizeBefore,
			firstOther(storeAfter, storeBefore))
	}
	t.Logf("tailor_store: %d tables, %d bytes before and after", len(storeAfter), sizeAfter)
	withoutSizes := func(tables []string) (out []string) {
		for _, line := range tables {
			fields := strings.Fields(line)
			out = append(out, fields[0]+" "+fields[len(fields)-1])
		}
		return out
	}
	if _, catalog := stored(t, direct, "tailor", "^audit"); !slices.Equal(withoutSizes(catalog),
		withoutSizes(catalogBefore)) {
		t.Errorf("queries changed what Tailor keeps beside the audit: %s",
			firstOther(withoutSizes(catalog), withoutSizes(catalogBefore)))
	}
}

// asksOnce logs in, asks and goes.
func asksOnce(dsn, sql string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	conn, err := pgconn.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	_, err = conn.Exec(ctx, sql).ReadAll()
	return err
}

// arePlannedAtOnce has many readers who have never asked before ask a random statement,
// a quarter of them ten times and once more in a session of its own: a server process
// answers its first query late, whoever asks. The record of an answer says how long was
// planned over the release; what the client sees has the rest in it. Bounds are
// generous, and not on what other work of the machine decides; figures are logged.
func arePlannedAtOnce(t *testing.T, s *testCluster) {
	const times = 10
	newcomers := 80
	if soaks() {
		newcomers = 200
	}
	direct := s.superuser(t)
	p := s.serveBinary(t, binary)
	rowsOf(t, connect(t, p.dsn("researcher")), "SELECT count(*) FROM patients") // the root is made
	names := admitMany(t, direct, "first", newcomers)
	rng := rand.New(rand.NewPCG(6, 22))
	var firsts, tenths, agains []time.Duration // as the client sees them
	session := func(name, sql string, times int) (taken []time.Duration) {
		conn := connect(t, p.dsnOf(name, "first"))
		for range times {
			began := time.Now()
			rowsOf(t, conn, sql)
			taken = append(taken, time.Since(began))
		}
		_ = conn.Close(t.Context())
		return taken
	}
	for i, name := range names {
		sources := hospitalSources()
		sql := sources[rng.IntN(len(sources))].draw(rng) + " LIMIT 1"
		if i%4 > 0 {
			firsts = append(firsts, session(name, sql, 1)...)
			continue
		}
		taken := session(name, sql, times)
		firsts, tenths = append(firsts, taken[0]), append(tenths, taken[times-1])
		agains = append(agains, session(name, sql, 1)...)
	}
	var firstPlans, tenthPlans []time.Duration // by the records
	seen := make(map[string]int)
	for _, r := range p.records(t) {
		name := fmt.Sprint(r["principal"])
		if !strings.HasPrefix(name, "first_") || r["verdict"] != "released" {
			continue
		}
		plan := time.Duration(r["plan_ms"].(float64) * float64(time.Millisecond))
		switch seen[name]++; seen[name] {
		case 1:
			firstPlans = append(firstPlans, plan)
		case times:
			tenthPlans = append(tenthPlans, plan)
		}
	}
	if len(firstPlans) != newcomers || len(tenthPlans) != newcomers/4 {
		t.Fatalf("%d and %d records of %d readers", len(firstPlans), len(tenthPlans), newcomers)
	}
	for _, d := range []struct {
		what  string
		taken []time.Duration
	}{
		{"first plan", firstPlans},
		{"tenth plan", tenthPlans},
		{"first answer", firsts},
		{"tenth answer", tenths},
		{"first answer of the next session", agains},
	} {
		t.Logf("%s: median %v, 90th percentile %v, 99th %v, longest %v", d.what,
			percentile(d.taken, 50), percentile(d.taken, 90), percentile(d.taken, 99),
			percentile(d.taken, 100))
	}
	for _, bound := range []struct {
		claim       string
		taken, most time.Duration
	}{
		{"the median of planning", percentile(firstPlans, 50), 2 * time.Millisecond},
		{"the 99th percentile of planning", percentile(firstPlans, 99), 20 * time.Millisecond},
		{
			"what a first answer takes longer than one to a known reader",
			percentile(firsts, 50) - percentile(agains, 50),
			max(10*time.Millisecond, percentile(agains, 50)/2),
		},
	} {
		if bound.taken > bound.most {
			t.Errorf("%s is %v, want at most %v", bound.claim, bound.taken, bound.most)
		}
	}
}

// percentile is the smallest of some durations that a share of them does not exceed.
func percentile(taken []time.Duration, percent int) time.Duration {
	sorted := slices.SortedFunc(slices.Values(taken), cmp.Compare)
	return sorted[max(0, (len(sorted)*percent+99)/100-1)]
}
