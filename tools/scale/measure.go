package main

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/hiatus-tailor/tailor/internal/pgcluster"
)

const (
	reader  = "researcher"
	columns = "age, sex, zip, admitted, marital, origin, diagnosis, cost"
)

// table has six quasi-identifiers, of which nearly every combination occurs once.
const table = `
CREATE ROLE ` + reader + ` LOGIN PASSWORD '` + reader + `';
SELECT setseed(0.5);
CREATE TABLE people AS SELECT n AS id,
	45 + (20 * (random() + random() + random() - 1.5))::integer AS age,
	(ARRAY['female', 'male'])[1 + (random() < 0.5)::integer] AS sex,
	to_char(10000 + 89999 * random() ^ 1.5, 'FM00000') AS zip,
	DATE '2015-01-01' + (3650 * random())::integer AS admitted,
	(ARRAY['single', 'married', 'widowed'])[1 + floor(2.99 * random())::integer] AS marital,
	'country ' || (40 * random() ^ 3)::integer AS origin,
	'diagnosis ' || (60 * random() ^ 2)::integer AS diagnosis,
	(10000 * random() ^ 3)::integer AS cost
	FROM generate_series(1, %d) n;
ALTER TABLE people ADD PRIMARY KEY (id);
CREATE INDEX ON people (zip);`

const policy = `
CALL tailor.grant_reader('` + reader + `');
CALL tailor.define_hierarchy('years', 'interval',
	'{"widths": [5, 10, 20, 40], "lower": 0, "upper": 119}');
CALL tailor.define_hierarchy('code', 'prefix', '{"keep": [4, 3, 2, 1]}');
CALL tailor.define_hierarchy('day', 'date', '{"levels": ["month", "year"]}');
CALL tailor.define_hierarchy('flat', 'prefix', '{"keep": []}');
CALL tailor.protect('people', 'id', 5);
CALL tailor.classify('people', 'age', 'quasi_identifier', hierarchy => 'years');
CALL tailor.classify('people', 'sex', 'quasi_identifier', hierarchy => 'flat');
CALL tailor.classify('people', 'zip', 'quasi_identifier', hierarchy => 'code');
CALL tailor.classify('people', 'admitted', 'quasi_identifier', hierarchy => 'day');
CALL tailor.classify('people', 'marital', 'quasi_identifier', hierarchy => 'flat');
CALL tailor.classify('people', 'origin', 'quasi_identifier', hierarchy => 'flat');
CALL tailor.classify('people', 'diagnosis', 'sensitive');
CALL tailor.classify('people', 'cost', 'non_sensitive');
CALL tailor.require('people', 'l_diversity', 'diagnosis', 3)`

// stand is a PostgreSQL and a proxy.
type stand struct {
	binary, dir string
	partRows    int
	releaseOnly bool
	rows        int
	cluster     *pgcluster.Cluster
	admin       *pgx.Conn
	proxy       *exec.Cmd
	address     string
	into        *figures
}

// measure measures one size in a folder of its own.
func measure(ctx context.Context, as stand) error {
	s := &as
	var err error
	if s.dir, err = os.MkdirTemp(s.dir, "tailor-scale-"); err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(s.dir) }()
	if err := os.Chmod(s.dir, 0o755); err != nil {
		return err
	}
	defer s.stop()
	steps := []func(context.Context) error{s.start, s.activate}
	if !s.releaseOnly {
		steps = append(steps, s.statements, s.refresh, s.memory)
	}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (s *stand) start(ctx context.Context) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	port := l.Addr().(*net.TCPAddr).Port
	_ = l.Close()
	s.cluster, err = pgcluster.Start(ctx, filepath.Join(s.dir, "pg"), port,
		"shared_buffers=1GB", "max_wal_size=8GB", "checkpoint_timeout=30min")
	if err != nil {
		return err
	}
	if s.admin, err = pgx.Connect(ctx, s.cluster.SuperuserDSN("postgres")); err != nil {
		return err
	}
	install := exec.CommandContext(ctx, s.binary, "install",
		"--dsn", s.cluster.SuperuserDSN("postgres"))
	if output, err := install.CombinedOutput(); err != nil {
		return fmt.Errorf("install: %w: %s", err, output)
	}
	if _, err := s.admin.Exec(ctx, fmt.Sprintf(table, s.rows)); err != nil {
		return err
	}
	if _, err := s.admin.Exec(ctx, "VACUUM ANALYZE people"); err != nil {
		return err
	}
	return s.size(ctx, "table", "SELECT pg_table_size('people')")
}

// size notes bytes a row.
func (s *stand) size(ctx context.Context, name, query string) error {
	bytes, err := value[int64](ctx, s, query)
	s.into.note(name, "bytes a row", float64(bytes)/float64(s.rows))
	return err
}

func (s *stand) serve(ctx context.Context) error {
	s.proxy = exec.CommandContext(ctx, s.binary, "serve", "--listen", "127.0.0.1:0",
		"--upstream", s.cluster.Address(), "--service-dsn", s.cluster.ServiceDSN("postgres"),
		"--part-rows", strconv.Itoa(s.partRows), "--log-level", "warn", "--audit-table=false",
		"--audit-log", filepath.Join(s.dir, "audit.jsonl"))
	s.proxy.Stderr = os.Stderr
	stdout, err := s.proxy.StdoutPipe()
	if err != nil {
		return err
	}
	if err := s.proxy.Start(); err != nil {
		return err
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		return fmt.Errorf("tailor did not start: %w", err)
	}
	s.address = strings.TrimSpace(strings.TrimPrefix(line, "listening on "))
	return nil
}

// activate notes what it takes until the table can be read.
func (s *stand) activate(ctx context.Context) error {
	started := time.Now()
	if _, err := s.admin.Exec(ctx, policy); err != nil {
		return err
	}
	if _, err := s.admin.Exec(ctx, "CALL tailor.activate('people')"); err != nil {
		return err
	}
	s.into.note("activation: copy", "s", time.Since(started).Seconds())
	started = time.Now()
	if err := s.serve(ctx); err != nil {
		return err
	}
	for {
		made, err := value[bool](ctx, s, "SELECT EXISTS (SELECT FROM tailor.chain WHERE blocks > 0)")
		if err != nil {
			return err
		}
		if made {
			break
		}
		if err := pause(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
	s.into.note("activation: release", "s", time.Since(started).Seconds())
	s.into.note("activation: proxy's peak", "MB", s.status("VmHWM:")/1e6)
	s.into.note("activation: proxy's peak", "bytes a row", s.status("VmHWM:")/float64(s.rows))
	var blocks, smallest int
	var release string
	err := s.admin.QueryRow(ctx, `SELECT blocks, min_block, format('tailor_store.chain_%s_row', chain)
		FROM tailor.chain`).Scan(&blocks, &smallest, &release)
	if err != nil {
		return err
	}
	loss, err := value[float64](ctx, s, `SELECT avg((c -> 'loss')::float8) FROM tailor.chain,
		jsonb_path_query(columns, '$.*') c WHERE c ? 'loss'`)
	if err != nil {
		return err
	}
	s.into.note("loss of a quasi-identifier", "%", 100*loss)
	s.into.note("a block", "subjects", float64(s.rows)/float64(blocks))
	s.into.note("the smallest block", "subjects", float64(smallest))
	if err := s.size(ctx, "release", "SELECT pg_table_size('"+release+"')"); err != nil {
		return err
	}
	return s.size(ctx, "release with indexes", "SELECT pg_total_relation_size('"+release+"')")
}

// status is a line of the proxy's memory, in bytes.
func (s *stand) status(line string) float64 {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.proxy.Process.Pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(status), line)
	kilobytes, _ := strconv.Atoi(strings.Fields(rest)[0])
	return float64(kilobytes << 10)
}

// questions are statements, and how often each is asked.
var questions = []struct {
	name, text string
	times      int
}{
	{"by index", "SELECT age, diagnosis, cost FROM people WHERE zip = '54321'", 100},
	{"by index, other values", "SELECT age, diagnosis, cost FROM people WHERE zip = '6%04d'", 100},
	{"by scan", "SELECT count(*), avg(cost) FROM people WHERE age > 60", 5},
	{
		"by groups",
		"SELECT age, sex, diagnosis, count(*), avg(cost) FROM people GROUP BY age, sex, diagnosis", 5,
	},
}

// statements notes the time of each, the first and the median of the next, beside that of
// the same text over a table made by hand of what a reader is shown.
func (s *stand) statements(ctx context.Context) error {
	shown, err := value[string](ctx, s,
		"SELECT format('tailor_release.chain_%s', chain) FROM tailor.chain")
	if err != nil {
		return err
	}
	for _, statement := range []string{
		"CREATE SCHEMA by_hand",
		"CREATE TABLE by_hand.people AS SELECT " + columns + " FROM " + shown,
		"CREATE INDEX ON by_hand.people (zip)",
		"VACUUM ANALYZE by_hand.people",
		"GRANT USAGE ON SCHEMA by_hand TO " + reader,
		"GRANT SELECT ON by_hand.people TO " + reader,
		"CHECKPOINT",
	} {
		if _, err := s.admin.Exec(ctx, statement); err != nil {
			return fmt.Errorf("%s: %w", statement, err)
		}
	}
	through, err := connect(ctx, s.address)
	if err != nil {
		return err
	}
	defer func() { _ = through.Close(ctx) }()
	direct, err := connect(ctx, s.cluster.Address())
	if err != nil {
		return err
	}
	defer func() { _ = direct.Close(ctx) }()
	if err := direct.Exec(ctx, "SET search_path = by_hand").Close(); err != nil {
		return err
	}
	for _, q := range questions {
		var ours, theirs []float64
		for i := range q.times + 1 {
			text := q.text
			if strings.Contains(text, "%") {
				text = fmt.Sprintf(text, i)
			}
			a, err := ask(ctx, through, text)
			if err != nil {
				return fmt.Errorf("%s: %w", q.name, err)
			}
			b, err := ask(ctx, direct, text)
			if err != nil {
				return fmt.Errorf("%s: %w", q.name, err)
			}
			if i == 0 {
				s.into.note(q.name+", first", "ms", a)
				continue
			}
			ours, theirs = append(ours, a), append(theirs, b)
		}
		s.into.note(q.name, "ms", median(ours))
		s.into.note(q.name, "times a table by hand", median(ours)/median(theirs))
	}
	_, err = s.admin.Exec(ctx, "DROP SCHEMA by_hand CASCADE")
	return err
}

// value is the one value that a query of an administrator returns.
func value[T any](ctx context.Context, s *stand, query string) (v T, err error) {
	err = s.admin.QueryRow(ctx, query).Scan(&v)
	return v, err
}

// connect logs in as the reader.
func connect(ctx context.Context, address string) (*pgconn.PgConn, error) {
	return pgconn.Connect(ctx,
		fmt.Sprintf("postgres://%[1]s:%[1]s@%[2]s/postgres?sslmode=disable", reader, address))
}

// ask is how long an answer took, in milliseconds.
func ask(ctx context.Context, conn *pgconn.PgConn, text string) (float64, error) {
	started := time.Now()
	answers := conn.Exec(ctx, text)
	for answers.NextResult() {
		for r := answers.ResultReader(); r.NextRow(); {
			continue
		}
	}
	err := answers.Close()
	return time.Since(started).Seconds() * 1000, err
}

func median(values []float64) float64 { return slices.Sorted(slices.Values(values))[len(values)/2] }

// refresh notes what it takes to follow the change of one row in a hundred.
func (s *stand) refresh(ctx context.Context) error {
	changed := fmt.Sprintf(`DELETE FROM people WHERE id %% 200 = 7;
		INSERT INTO people SELECT id + %d, `+columns+` FROM people WHERE id %% 200 = 8`, s.rows)
	if _, err := s.admin.Exec(ctx, changed); err != nil {
		return err
	}
	before, err := value[string](ctx, s, "SELECT pg_current_wal_lsn()::text")
	if err != nil {
		return err
	}
	started := time.Now()
	refresh := exec.CommandContext(ctx, s.binary, "refresh",
		"--dsn", s.cluster.SuperuserDSN("postgres"), "--timeout", "2h", "--table", "people")
	if output, err := refresh.CombinedOutput(); err != nil {
		return fmt.Errorf("refresh: %w: %s", err, output)
	}
	s.into.note("refresh of 1 %", "s", time.Since(started).Seconds())
	return s.size(ctx, "refresh of 1 %, written",
		"SELECT (pg_current_wal_lsn() - '"+before+"')::bigint")
}

// memory notes what a proxy holds that has only read.
func (s *stand) memory(ctx context.Context) error {
	s.halt()
	started := time.Now()
	if err := s.serve(ctx); err != nil {
		return err
	}
	conn, err := connect(ctx, s.address)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	if _, err := ask(ctx, conn, questions[0].text); err != nil {
		return err
	}
	s.into.note("a proxy's first answer", "s", time.Since(started).Seconds())
	s.into.note("a proxy that reads", "MB", s.status("VmRSS:")/1e6)
	return nil
}

// pause waits, or ends with the context.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// halt ends the proxy.
func (s *stand) halt() {
	if s.proxy != nil {
		_ = s.proxy.Process.Signal(syscall.SIGTERM)
		_ = s.proxy.Wait()
	}
}

func (s *stand) stop() {
	s.halt()
	if s.admin != nil {
		_ = s.admin.Close(context.Background())
	}
	if s.cluster != nil {
		s.cluster.Stop()
	}
}
