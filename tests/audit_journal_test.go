package tests

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// killedTwice is a proxy's file of four records, of which two came after a kill
// and a start: its journal begins with those.
func killedTwice(t *testing.T) (file, user string) {
	t.Helper()
	user = shared.reader(t)
	first := shared.serve(t, "--audit-table=false")
	asks(t, first, user, 4)
	first.kill()
	again := shared.serve(t, "--audit-table=false", "--audit-log", first.auditTo)
	asks(t, again, user, 2)
	again.kill()
	return first.auditTo, user
}

func asks(t *testing.T, p *testProxy, user string, n int) {
	t.Helper()
	conn := connect(t, p.dsn(user))
	for i := range n {
		mustExec(t, conn, fmt.Sprintf(`SELECT count(*) FROM patients WHERE age > %d`, 20+i))
	}
}

func verifies(t *testing.T, file string, more ...string) (string, bool) {
	t.Helper()
	output, err := exec.CommandContext(t.Context(), binary, append([]string{
		"audit", "--verify",
		"--file", file,
	}, more...)...).CombinedOutput()
	return string(output), err == nil
}

func TestAnAuditTailCutBelowTheJournalIsFoundBeforeAndAfterAStart(t *testing.T) {
	file, user := killedTwice(t)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.SplitAfter(text, []byte("\n"))
	if err := os.WriteFile(file, bytes.Join(lines[:2], nil), 0o600); err != nil {
		t.Fatal(err)
	}
	if output, fine := verifies(t, file); fine || !strings.Contains(output, "are missing before it") {
		t.Errorf("%d records are cut off, and the verification finds:\n%s", len(lines)-3, output)
	}
	p := shared.serve(t, "--audit-table=false", "--audit-log", file)
	asks(t, p, user, 1)
	if !strings.Contains(p.log.String(), "the audit file was cut, replaced or moved away") {
		t.Errorf("the log says nothing:\n%s", p.log.String())
	}
	if output, fine := verifies(t, file); fine || !strings.Contains(output, "are missing") {
		t.Errorf("after a start it finds:\n%s", output)
	}
}

func TestAnAuditFileMovedAwayAfterACrashLeavesWhatTheJournalHolds(t *testing.T) {
	file, user := killedTwice(t)
	if err := os.Rename(file, file+".away"); err != nil {
		t.Fatal(err)
	}
	p := shared.serve(t, "--audit-table=false", "--audit-log", file)
	asks(t, p, user, 1)
	if !strings.Contains(p.log.String(), "the audit file was cut, replaced or moved away") {
		t.Errorf("the log says nothing:\n%s", p.log.String())
	}
	aside, err := os.ReadFile(file + ".00000001")
	if err != nil || bytes.Count(aside, []byte("\n")) < 2 {
		t.Fatalf("what the journal held is gone: %v, %d bytes", err, len(aside))
	}
	_, after, _ := strings.Cut(string(aside), `"previous_hash":"`)
	after, _, _ = strings.Cut(after, `"`)
	if output, fine := verifies(t, file, "--anchor", after); !fine {
		t.Errorf("with the hash before them:\n%s", output)
	}
	if output, fine := verifies(t, file); fine {
		t.Errorf("without it nothing is missing:\n%s", output)
	}
}
