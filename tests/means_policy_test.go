package tests

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

func TestMeansThatNothingWouldGuardAreRefused(t *testing.T) {
	direct := makeDatabase(t, "means_refused", `CREATE TABLE one (id int PRIMARY KEY, pay int, code text, born date, note text);
INSERT INTO one SELECT n, n % 90, 'c' || n % 5, date '2000-01-01' + n, 's' FROM generate_series(1, 60) n;
CREATE TABLE several (id int, pay int); INSERT INTO several SELECT n % 20, n % 90 FROM generate_series(1, 60) n;`)
	if err := shared.install(t.Context(), "means_refused"); err != nil {
		t.Fatal(err)
	}
	exec1(t, direct, `CALL tailor.define_hierarchy('pay', 'interval', '{"widths": [10], "lower": 0, "upper": 99}');
CALL tailor.define_hierarchy('code', 'prefix', '{"keep": [1]}'); CALL tailor.define_hierarchy('day', 'date', '{"levels": ["year"]}');
CALL tailor.protect('one', 'id', 5); CALL tailor.protect('several', 'id', 5);
CALL tailor.classify('one', 'pay', 'quasi_identifier', hierarchy => 'pay'); CALL tailor.classify('one', 'code', 'quasi_identifier', hierarchy => 'code');
CALL tailor.classify('one', 'born', 'quasi_identifier', hierarchy => 'day'); CALL tailor.classify('one', 'note', 'sensitive');
CALL tailor.classify('several', 'pay', 'quasi_identifier', hierarchy => 'pay')`)
	for _, c := range []struct{ claim, code, says, sql string }{
		{"an unknown representative", "22023", "unknown representative", `CALL tailor.represent('one', 'pay', 'median')`},
		{"no representative", "22023", "unknown representative", `CALL tailor.represent('one', 'pay', NULL)`},
		{"a sensitive column", "22023", "not classified as quasi_identifier", `CALL tailor.represent('one', 'note', 'mean')`},
		{"a column without a class", "22023", "not classified as quasi_identifier", `CALL tailor.represent('one', 'id', 'mean')`},
		{"codes", "0A000", "cannot be shown by means", `CALL tailor.represent('one', 'code', 'mean'); CALL tailor.activate('one')`},
		{"days", "0A000", "cannot be shown by means", `CALL tailor.represent('one', 'born', 'mean'); CALL tailor.activate('one')`},
		{"several rows of one subject", "0A000", "several rows", `CALL tailor.represent('several', 'pay', 'mean'); CALL tailor.activate('several')`},
	} {
		_, err := direct.Exec(t.Context(), c.sql)
		var answer *pgconn.PgError
		if !errors.As(err, &answer) || answer.Code != c.code || !strings.Contains(answer.Message, c.says) || answer.Hint == "" {
			t.Errorf("%s: %v", c.claim, err)
		}
	}
	// To classify a column again is to say everything of it again.
	exec1(t, direct, `CALL tailor.represent('one', 'pay', 'mean'); CALL tailor.classify('one', 'pay', 'quasi_identifier', hierarchy => 'pay')`)
	if one[bool](t, direct, `SELECT tailor.draft('one') @? '$.columns[*] ? (@.representative == "mean")'`) {
		t.Error("a column that is classified again keeps its representative")
	}
}

func TestAJoinTakesNoMeansApart(t *testing.T) {
	direct := makeDatabase(t, "means_joined", payrollSchema+`CREATE TABLE leave (id int REFERENCES payroll, day int);
INSERT INTO leave SELECT id, d FROM payroll, generate_series(1, 2) d;`)
	if err := shared.install(t.Context(), "means_joined"); err != nil {
		t.Fatal(err)
	}
	exec1(t, direct, payrollPolicy+`CALL tailor.protect('leave', 'id', 5); CALL tailor.classify('leave', 'day', 'non_sensitive'); CALL tailor.activate('leave');`)
	reader := connect(t, serveDatabase(t, "means_joined").dsn(shared.reader(t)))
	join := `SELECT avg(pay) FROM leave l JOIN payroll p ON l.id = p.id`
	var answer *pgconn.PgError
	if _, err := reader.Exec(t.Context(), join); !errors.As(err, &answer) || answer.Code != "0A000" || !strings.Contains(answer.Message, "shown by means") {
		t.Errorf("%v", err)
	}
	// Once joins have shown labels, there are no means before these are forgotten.
	exec1(t, direct, `CALL tailor.forget_chains('payroll');
CALL tailor.represent('payroll', 'pay', 'middle'); CALL tailor.represent('payroll', 'hours', 'middle'); CALL tailor.represent('payroll', 'flag', 'middle');
CALL tailor.represent('payroll', 'bonus', 'middle'); CALL tailor.activate('payroll'); CALL tailor.activate('leave')`)
	waitFor(t, func() bool { _, err := reader.Exec(t.Context(), join); return err == nil })
	exec1(t, direct, `CALL tailor.represent('payroll', 'pay', 'mean')`)
	if _, err := direct.Exec(t.Context(), `CALL tailor.activate('payroll')`); !errors.As(err, &answer) || answer.Code != "55000" {
		t.Errorf("means are shown beside labels of joins: %v", err)
	}
	exec1(t, direct, `CALL tailor.forget_chains('leave'); CALL tailor.activate('payroll')`)
}

func TestAJoinShowsNoLabelsOfWhatWasShownByMeansBefore(t *testing.T) {
	direct := makeDatabase(t, "means_taken_back", payrollSchema+`CREATE TABLE leave (id int REFERENCES payroll, day int);
INSERT INTO leave SELECT id, d FROM payroll, generate_series(1, 2) d;`)
	if err := shared.install(t.Context(), "means_taken_back"); err != nil {
		t.Fatal(err)
	}
	exec1(t, direct, payrollPolicy+`CALL tailor.protect('leave', 'id', 5); CALL tailor.classify('leave', 'day', 'non_sensitive'); CALL tailor.activate('leave');`)
	reader := connect(t, serveDatabase(t, "means_taken_back").dsn(shared.reader(t)))
	rowsOf(t, reader, `SELECT avg(pay) FROM payroll`)
	exec1(t, direct, `CALL tailor.represent('payroll', 'pay', 'middle'); CALL tailor.represent('payroll', 'hours', 'middle'); CALL tailor.represent('payroll', 'flag', 'middle');
CALL tailor.represent('payroll', 'bonus', 'middle'); CALL tailor.activate('payroll'); CALL tailor.activate('leave')`)
	join := `SELECT pay FROM leave l JOIN payroll p ON l.id = p.id`
	var answer *pgconn.PgError
	waitFor(t, func() bool { // the proxy hears of the policy a moment later
		_, err := reader.Exec(t.Context(), `SELECT pay FROM payroll`)
		return errors.As(err, &answer) && answer.Code == "KA004"
	})
	if _, err := reader.Exec(t.Context(), join); !errors.As(err, &answer) || answer.Code != "KA004" || !strings.Contains(answer.Hint, "tailor.forget_chains('public.payroll')") {
		t.Errorf("a join shows what the table itself withholds: %v", err)
	}
	exec1(t, direct, `CALL tailor.forget_chains('payroll'); CALL tailor.activate('leave')`)
	waitFor(t, func() bool { _, err := reader.Exec(t.Context(), join); return err == nil })
}

func TestWhatJoinsHaveShownIsFoundUnderAnotherNameToo(t *testing.T) {
	direct := makeDatabase(t, "means_renamed", payrollSchema+`CREATE TABLE leave (id int REFERENCES payroll, day int);
INSERT INTO leave SELECT id, d FROM payroll, generate_series(1, 2) d;`)
	if err := shared.install(t.Context(), "means_renamed"); err != nil {
		t.Fatal(err)
	}
	exec1(t, direct, strings.ReplaceAll(payrollPolicy, "'mean'", "'middle'")+
		`CALL tailor.protect('leave', 'id', 5); CALL tailor.classify('leave', 'day', 'non_sensitive'); CALL tailor.activate('leave');`)
	reader := connect(t, serveDatabase(t, "means_renamed").dsn(shared.reader(t)))
	rowsOf(t, reader, `SELECT pay FROM leave l JOIN payroll p ON l.id = p.id`)
	exec1(t, direct, `ALTER TABLE payroll RENAME TO wages; CALL tailor.represent('wages', 'pay', 'mean')`)
	var answer *pgconn.PgError
	if _, err := direct.Exec(t.Context(), `CALL tailor.activate('wages')`); !errors.As(err, &answer) || answer.Code != "55000" || !strings.Contains(answer.Message, "joins") {
		t.Errorf("means are shown beside labels of joins: %v", err)
	}
	exec1(t, direct, `CALL tailor.forget_chains('leave'); CALL tailor.activate('wages')`)
}

func TestWhatJoinsHaveShownIsNotForgottenWithTheKey(t *testing.T) {
	direct := makeDatabase(t, "means_unlinked", payrollSchema+`CREATE TABLE leave (id int REFERENCES payroll, day int);
INSERT INTO leave SELECT id, d FROM payroll, generate_series(1, 2) d;`)
	if err := shared.install(t.Context(), "means_unlinked"); err != nil {
		t.Fatal(err)
	}
	exec1(t, direct, strings.ReplaceAll(payrollPolicy, "'mean'", "'middle'")+
		`CALL tailor.protect('leave', 'id', 5); CALL tailor.classify('leave', 'day', 'non_sensitive'); CALL tailor.activate('leave');`)
	reader := connect(t, serveDatabase(t, "means_unlinked").dsn(shared.reader(t)))
	rowsOf(t, reader, `SELECT pay FROM leave l JOIN payroll p ON l.id = p.id`)
	// Without the key the child has no quasi-identifiers any more, of which its
	// chains know.
	exec1(t, direct, `ALTER TABLE leave DROP CONSTRAINT leave_id_fkey; CALL tailor.activate('leave')`)
	var answer *pgconn.PgError
	waitFor(t, func() bool {
		_, err := reader.Exec(t.Context(), `SELECT day FROM leave`)
		return errors.As(err, &answer) && answer.Code == "KA004"
	})
	exec1(t, direct, `CALL tailor.represent('payroll', 'pay', 'mean')`)
	for _, name := range []string{"payroll", "wages"} {
		if name != "payroll" {
			exec1(t, direct, `ALTER TABLE payroll RENAME TO wages`)
		}
		if _, err := direct.Exec(t.Context(), `CALL tailor.activate('`+name+`')`); !errors.As(err, &answer) || answer.Code != "55000" || !strings.Contains(answer.Message, "joins") {
			t.Errorf("means of %s are shown beside labels of joins: %v", name, err)
		}
	}
	exec1(t, direct, `CALL tailor.forget_chains('leave'); CALL tailor.activate('wages')`)
}

func TestAColumnStartsToBeShownByMeansWithANewChain(t *testing.T) {
	direct := makeDatabase(t, "means_late", payrollSchema)
	if err := shared.install(t.Context(), "means_late"); err != nil {
		t.Fatal(err)
	}
	exec1(t, direct, strings.ReplaceAll(payrollPolicy, "'mean'", "'middle'"))
	reader := connect(t, serveDatabase(t, "means_late").dsn(shared.reader(t)))
	rowsOf(t, reader, `SELECT sex, town, age, pay FROM payroll`)
	exec1(t, direct, `CALL tailor.represent('payroll', 'pay', 'mean'); CALL tailor.activate('payroll')`)
	var answer *pgconn.PgError
	waitFor(t, func() bool {
		_, err := reader.Exec(t.Context(), `SELECT avg(pay) FROM payroll`)
		return errors.As(err, &answer) && answer.Code == "KA004"
	})
	exec1(t, direct, `CALL tailor.forget_chains('payroll')`)
	waitFor(t, func() bool { _, err := reader.Exec(t.Context(), `SELECT avg(pay) FROM payroll`); return err == nil })
}

func TestMeansStayWithTheirHierarchyUntilChainsAreForgotten(t *testing.T) {
	direct := payrollDatabase(t, "means_bounds", "")
	reader := connect(t, serveDatabase(t, "means_bounds").dsn(shared.reader(t)))
	rowsOf(t, reader, `SELECT avg(pay) FROM payroll`)
	// Other bounds would have the same sums rounded at other places.
	exec1(t, direct, `CALL tailor.define_hierarchy('pay', 'interval', '{"widths": [1000, 5000], "lower": 0, "upper": 21000}'); CALL tailor.activate('payroll')`)
	var answer *pgconn.PgError
	waitFor(t, func() bool { // the proxy hears of the policy a moment later
		_, err := reader.Exec(t.Context(), `SELECT avg(pay) FROM payroll`)
		return errors.As(err, &answer) && answer.Code == "KA004"
	})
	exec1(t, direct, `CALL tailor.forget_chains('payroll')`)
	waitFor(t, func() bool { _, err := reader.Exec(t.Context(), `SELECT avg(pay) FROM payroll`); return err == nil })
}

func TestAColumnThatWasShownByMeansStaysSoUntilItsChainsAreForgotten(t *testing.T) {
	direct := payrollDatabase(t, "means_kept", "")
	name := shared.reader(t)
	p := serveDatabase(t, "means_kept")
	cells := `SELECT sex, town, avg(pay) FROM payroll GROUP BY sex, town ORDER BY 1, 2`
	reader := connect(t, p.dsn(name))
	rowsOf(t, reader, `SELECT avg(pay) FROM payroll`)
	before := rowsOf(t, reader, cells)

	// Another proxy, and one that starts anew, know the groups.
	p.stop(t)
	second, third := serveDatabase(t, "means_kept"), serveDatabase(t, "means_kept")
	for i, other := range []*proxied{second, third} {
		conn := connect(t, other.dsn(name))
		if again := rowsOf(t, conn, cells); !slices.Equal(again, before) {
			t.Errorf("proxy %d shows\n%v\nbefore\n%v", i, again, before)
		}
		rowsOf(t, conn, fmt.Sprintf(`SELECT age / %d, avg(pay) FROM payroll GROUP BY 1`, 10*(i+1)))
		if again := rowsOf(t, conn, cells); len(again) != len(before) {
			t.Errorf("%d cells", len(again))
		}
		before = rowsOf(t, conn, cells)
	}

	exec1(t, direct, `CALL tailor.represent('payroll', 'pay', 'middle'); CALL tailor.activate('payroll')`)
	conn := connect(t, second.dsn(name))
	var answer *pgconn.PgError
	waitFor(t, func() bool { // the proxy hears of the policy a moment later
		_, err := conn.Exec(t.Context(), cells)
		return errors.As(err, &answer) && answer.Code == "KA004"
	})
	exec1(t, direct, `CALL tailor.forget_chains('payroll')`)
	waitFor(t, func() bool { _, err := conn.Exec(t.Context(), cells); return err == nil })
}
