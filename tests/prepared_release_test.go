package tests

import (
	"context"
	"fmt"
	"regexp"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// largeTable has so many combinations that its release takes seconds.
const largeTable = `
CREATE TABLE large AS
	SELECT n AS id, n % 90 AS age, (10000 + n::bigint * 7919 % 89999)::text AS zip, n % 7 AS cost
	FROM generate_series(1, 60000) n;
ALTER TABLE large ADD PRIMARY KEY (id);
CALL tailor.protect('large', 'id', 5);
CALL tailor.classify('large', 'age', 'quasi_identifier', hierarchy => 'age');
CALL tailor.classify('large', 'zip', 'quasi_identifier', hierarchy => 'zip');
CALL tailor.classify('large', 'cost', 'non_sensitive');
CALL tailor.activate('large')`

// TestAReleaseThatIsBeingMadeIsWaitedForAWhile has a reader who waits a moment only, and one
// who gives up: each is told, or not, and the work goes on until there is an answer. The
// timeouts of the database's sessions end nothing of it.
func TestAReleaseThatIsBeingMadeIsWaitedForAWhile(t *testing.T) {
	s, admin := ownStand(t, "being_prepared")
	name := s.reader(t)
	for _, timeout := range []string{"statement_timeout", "idle_in_transaction_session_timeout"} {
		mustExec(t, admin, fmt.Sprintf(`DO $$ BEGIN
			EXECUTE format('ALTER DATABASE %%I SET %s = 100', current_database()); END $$`, timeout))
	}
	p := s.serve(t, "--release-wait", "1ms")
	reader := connect(t, p.dsn(name))
	mustExec(t, admin, largeTable, pgx.QueryExecModeSimpleProtocol)
	const question = "SELECT count(*) FROM large"
	mustExec(t, reader, "SET statement_timeout = 0")
	soon, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if hasty, err := pgx.Connect(soon, p.dsn(name)); err == nil {
		_, _ = hasty.Exec(soon, question, pgx.QueryExecModeSimpleProtocol)
		_ = hasty.Close(t.Context())
	}
	shares := make(map[string]bool)
	far := regexp.MustCompile(`^table "large" is being prepared(: making blocks, (\d+) %)?`)
	maker := 0
	waitFor(t, func() bool {
		at := one[int](t, admin, `SELECT coalesce(min(pid), 0) FROM tailor.progress
			WHERE relation = 'large'::regclass AND phase = 'making blocks'`)
		if at != 0 && maker != 0 && at != maker {
			t.Fatalf("made by backend %d, and again by %d", maker, at)
		}
		maker = max(at, maker)
		_, err := reader.Exec(t.Context(), question, pgx.QueryExecModeSimpleProtocol)
		if err == nil {
			return true
		}
		refusal, is := asRefusal(err)
		if !is {
			t.Fatal(err)
		}
		said := far.FindStringSubmatch(refusal.Message)
		switch {
		case refusal.Code == "42501": // the proxy has not heard of the policy yet
		case refusal.Code != "57P03" || said == nil:
			t.Fatal(err)
		case said[2] != "":
			shares[said[2]] = true
		}
		return false
	})
	if len(shares) < 2 {
		t.Errorf("told of the shares %v only", shares)
	}
	// Nor do they end a record that has to wait.
	holder := s.superuser(t)
	mustExec(t, holder, `SET statement_timeout = 0; SET idle_in_transaction_session_timeout = 0;
		BEGIN; LOCK TABLE tailor.audit_log IN SHARE ROW EXCLUSIVE MODE`)
	time.AfterFunc(time.Second, func() { _, _ = holder.Exec(context.Background(), "ROLLBACK") })
	if _, err := reader.Exec(t.Context(), question); err != nil {
		t.Errorf("while records wait: %v", errorText(err))
	}
}
