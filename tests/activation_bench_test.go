package tests

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// BenchmarkActivation puts a policy with five quasi-identifiers in force on a
// million rows, nearly all of them different, beside a plain copy of the table
// in random order, which nothing of the kind could be faster than, and beside
// the same activation with every slot of tailor.progress taken, so that it
// counts no rows. On a machine that is shared, the processor's time of the
// session tells more than the clock's.
func BenchmarkActivation(b *testing.B) {
	s, err := newStand(filepath.Join(stands, "activation"))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(s.cluster.Stop)
	conn, err := pgx.Connect(b.Context(), s.cluster.SuperuserDSN("hospital"))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = conn.Close(context.Background()) })
	process := int(conn.PgConn().PID())
	var processor time.Duration
	run := func(sql string) time.Duration {
		started, before := time.Now(), processorTime(b, process)
		defer func() { processor = processorTime(b, process) - before }()
		if _, err := conn.Exec(b.Context(), sql); err != nil {
			b.Fatal(err)
		}
		return time.Since(started)
	}
	run(`CREATE TABLE million AS SELECT n AS id, 'Name ' || n
		AS name, DATE '1930-01-01' + (n::bigint * 7919 % 33000)::int AS born, n % 97 AS age,
	(ARRAY['female', 'male'])[1 + n % 2] AS sex, (ARRAY['a', 'b', 'c', 'd', NULL])[1 + n % 5]
	AS race, (10000 + n::bigint * 104729 % 211 * 37)::text AS zip,
	'ward ' || n % 20 AS ward, 'd' || n % 41 AS diagnosis, n % 10007 AS cost
	FROM generate_series(1, 1000000) n;
ALTER TABLE million ADD PRIMARY KEY (id); ANALYZE million;
CALL tailor.define_hierarchy('years', 'interval',
    '{"widths": [5, 10, 20, 40], "lower": 0, "upper": 119}');
CALL tailor.define_hierarchy('code', 'prefix', '{"keep": [4, 3, 2, 1]}');
CALL tailor.define_hierarchy('born', 'date', '{"levels": ["month", "year", "decade"]}');
CALL tailor.define_hierarchy('flat', 'prefix', '{"keep": []}');
CALL tailor.protect('million', 'id', 5);
CALL tailor.classify('million', 'born', 'quasi_identifier', hierarchy => 'born');
CALL tailor.classify('million', 'age', 'quasi_identifier', hierarchy => 'years');
CALL tailor.classify('million', 'sex', 'quasi_identifier', hierarchy => 'flat');
CALL tailor.classify('million', 'race', 'quasi_identifier', hierarchy => 'flat');
CALL tailor.classify('million', 'zip', 'quasi_identifier', hierarchy => 'code');
CALL tailor.classify('million', 'ward', 'non_sensitive');
CALL tailor.classify('million', 'diagnosis', 'sensitive');
CALL tailor.classify('million', 'cost', 'non_sensitive')`)
	others, err := pgx.Connect(b.Context(), s.cluster.SuperuserDSN("hospital"))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = others.Close(context.Background()) })
	slots := func(call string) {
		if _, err := others.Exec(b.Context(), call); err != nil {
			b.Fatal(err)
		}
	}
	var activation, plain, busy, unseen time.Duration
	for b.Loop() {
		activation += run(`CALL tailor.activate('million')`)
		busy += processor
		slots(`BEGIN; LOCK TABLE tailor.lock_progress_1, tailor.lock_progress_2, ` +
			`tailor.lock_progress_3, tailor.lock_progress_4 IN EXCLUSIVE MODE`)
		run(`CALL tailor.activate('million')`)
		unseen += processor
		slots(`ROLLBACK`)
		plain += run(`CREATE TABLE shuffled AS SELECT * FROM million ORDER BY gen_random_uuid(); ` +
			`ANALYZE shuffled; DROP TABLE shuffled`)
	}
	b.ReportMetric(activation.Seconds()/float64(b.N), "s/activation")
	b.ReportMetric(activation.Seconds()/plain.Seconds(), "times-a-shuffled-copy")
	b.ReportMetric(busy.Seconds()/float64(b.N), "processor-s/activation")
	b.ReportMetric(busy.Seconds()/unseen.Seconds(), "times-without-progress")
}

// processorTime is how long a process has had a processor, as Linux counts it.
func processorTime(b *testing.B, process int) time.Duration {
	b.Helper()
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", process))
	if err != nil {
		b.Fatal(err)
	}
	fields := strings.Fields(string(raw[bytes.LastIndexByte(raw, ')')+1:])) // from the third on
	var ticks int
	for _, f := range fields[11:13] {
		n, err := strconv.Atoi(f)
		if err != nil {
			b.Fatal(err)
		}
		ticks += n
	}
	return time.Duration(ticks) * time.Second / 100
}
