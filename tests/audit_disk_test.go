package tests

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// TestAFullDiskRefusesProtectedQueriesUntilThereIsRoom runs the proxy with a
// limit on the size of files that the kernel enforces: a write beyond it fails
// as on a full disk, also with the half of a record written.
func TestAFullDiskRefusesProtectedQueriesUntilThereIsRoom(t *testing.T) {
	for _, c := range []struct {
		claim string
		wrap  []string
		flags []string
	}{
		{"a write that the kernel cuts short", []string{"prlimit", "--fsize=300000:unlimited"}, nil},
		{"no room for a journal either", []string{"prlimit", "--fsize=9000:unlimited"}, nil},
		{"a bound on all files", nil, []string{
			"--audit-file-bytes", "1048576", "--audit-total-bytes",
			"1048576",
		}},
	} {
		t.Run(c.claim, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "audit.jsonl")
			if c.wrap == nil { // leave less room than a dozen records need
				if err := os.WriteFile(path+".00000001", make([]byte, 1048576-9000), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			p := shared.serveIn(t, proxyFor(t), path, c.wrap, c.flags...)
			user := shared.reader(t)
			conn := connect(t, p.dsn(user))
			ask := func(sql string) string {
				_, err := conn.Exec(t.Context(), sql, pgx.QueryExecModeSimpleProtocol)
				var answer *pgconn.PgError
				if errors.As(err, &answer) {
					return answer.Code
				}
				if err != nil {
					t.Fatal(err)
				}
				return ""
			}
			answered := 0
			for long := "SELECT count(age)" + strings.Repeat(", 1 AS "+strings.Repeat("c", 40), 1000) +
				" FROM patients"; ask(long) == ""; {
				answered++
			}
			for ask("SELECT count(age) FROM patients") == "" {
				if answered++; answered > 100 {
					t.Fatal("the disk does not fill")
				}
			}
			for range 3 {
				if code := ask("SELECT count(age) FROM patients"); code != "KA005" {
					t.Errorf("on a full disk: %q, want KA005", code)
				}
				if code := ask("SELECT count(*) FROM numbers"); code != "" {
					t.Errorf("a query without protected tables: %s", code)
				}
			}
			if c.wrap != nil {
				if out, err := exec.Command("prlimit", "--pid", fmt.Sprint(p.command.Process.Pid),
					"--fsize=unlimited:unlimited").CombinedOutput(); err != nil {
					t.Fatalf("%v: %s", err, out)
				}
			} else if err := os.Remove(p.auditTo + ".00000001"); err != nil {
				t.Fatal(err)
			}
			if code := ask("SELECT count(age) FROM patients"); code != "" {
				t.Errorf("with room again: %s", code)
			}
			p.stop(t)
			out, stderr, code := tailor(t, "audit", "--verify", "--file", p.auditTo)
			if code != 0 || strings.Contains(out, "note:") {
				t.Errorf("exit code %d: %s %s", code, out, stderr)
			}
			verdicts := map[any]int{}
			for _, r := range p.records(t) {
				verdicts[r["verdict"]]++
			}
			if verdicts["released"] != answered+1 || verdicts["refused"] != 5 || verdicts["passed"] != 3 {
				t.Errorf("%v, want %d released, 5 refused, 3 passed", verdicts, answered+1)
			}
		})
	}
}

// serveIn starts a proxy, a tailor of the caller's, that writes to a file, under
// another command.
func (s *testCluster) serveIn(
	t *testing.T, binary, path string, wrap []string, flags ...string,
) *testProxy {
	t.Helper()
	p := &testProxy{testCluster: s, log: &safeBuffer{}, auditTo: path, database: "hospital"}
	args := slices.Concat(wrap, []string{
		binary, "serve", "--listen", "127.0.0.1:0", "--upstream", s.cluster.Address(),
		"--service-dsn", s.cluster.ServiceDSN("hospital"), "--audit-log", path,
	}, flags)
	p.command = exec.Command(args[0], args[1:]...)
	stdout, err := p.command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.command.Stderr = p.log
	if err := p.command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.stop(t) })
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatalf("the proxy did not start: %v\n%s", err, p.log)
	}
	p.address = strings.TrimSpace(strings.TrimPrefix(line, "listening on "))
	return p
}

// TestNoAnswerIsWithoutItsRecordWhereTheProxyIsKilled asks from several
// sessions while the file is set aside every few dozen records, and kills the
// proxy in the midst of it, again and again. Whatever was answered is recorded.
func TestNoAnswerIsWithoutItsRecordWhereTheProxyIsKilled(t *testing.T) {
	const sessions = 3
	kills := 6
	if soaks() {
		kills = 100
	}
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	user := shared.reader(t)
	var mu sync.Mutex
	answered := map[string]bool{} // by the alias that only this statement has
	long := strings.Repeat("c", 40)
	for round := range kills {
		p := shared.serveIn(t, proxyFor(t), path, nil, "--audit-file-bytes", "1048576")
		ctx, cancel := context.WithCancel(t.Context())
		var group sync.WaitGroup
		begun := make(chan struct{}, sessions*1000)
		for s := range sessions {
			group.Go(func() {
				conn, err := pgx.Connect(ctx, p.dsn(user))
				if err != nil {
					return
				}
				defer func() { _ = conn.Close(context.Background()) }()
				for i := 0; ctx.Err() == nil; i++ {
					alias := fmt.Sprintf("n_%d_%d_%d", round, s, i)
					// A long text, so that a file is full soon.
					columns := strings.Repeat("1 AS "+long+", ", 1000)
					var n int
					row := conn.QueryRow(ctx, fmt.Sprintf("SELECT %s FROM (SELECT %scount(*) AS %[1]s FROM "+
						"patients) q", alias, columns),
						pgx.QueryExecModeSimpleProtocol)
					if row.Scan(&n) != nil {
						return
					}
					mu.Lock()
					answered[alias] = true
					mu.Unlock()
					begun <- struct{}{}
				}
			})
		}
		// Not at the same point each time, nor at one that a clock decides.
		for range 5 + round%17 {
			select {
			case <-begun:
			case <-time.After(time.Minute):
				t.Fatalf("round %d: no answers\n%s", round, p.log)
			}
		}
		p.kill()
		cancel()
		group.Wait()
	}
	// A start mends what the last kill left.
	shared.serveIn(t, proxyFor(t), path, nil).stop(t)
	out, stderr, code := tailor(t, "audit", "--verify", "--file", path)
	if code != 0 || strings.Count(out, "chain ") != 1 {
		t.Errorf("exit code %d, want one whole chain: %s %s", code, out, stderr)
	}
	out, stderr, code = tailor(t, "audit", "--file", path, "--limit", "0", "--format", "json")
	if code != 0 {
		t.Fatal(stderr)
	}
	recorded := map[string]bool{}
	for line := range strings.Lines(out) {
		var r struct{ SQL string }
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatal(err)
		}
		if rest, ok := strings.CutPrefix(r.SQL, "SELECT "); ok {
			alias, _, _ := strings.Cut(rest, " ")
			recorded[alias] = true
		}
	}
	lost := 0
	for alias := range answered {
		if !recorded[alias] {
			lost++
		}
	}
	direct := shared.superuser(t)
	inTable := one[int](t, direct,
		`SELECT count(*) FROM tailor.audit WHERE principal = $1 AND event = 'statement'`, user)
	aside, _ := filepath.Glob(path + ".0*")
	if lost > 0 || len(aside) < kills/12 || inTable != len(recorded) {
		t.Errorf("%d of %d answers have no record; %d files set aside; %d records in the file, %d in "+
			"the table",
			lost, len(answered), len(aside), len(recorded), inTable)
	}
	t.Logf("%d kills, %d answers, %d records, %d files set aside", kills, len(answered), len(recorded),
		len(aside))
}
