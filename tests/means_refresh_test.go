package tests

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// refreshed is a payroll of which a reader has been shown means of groups, and
// which is then refreshed.
type refreshed struct {
	direct *pgx.Conn
	reader *pgx.Conn
	user   string
}

// questionsOfRefreshed have shown all that a chain shows: rows, too.
var questionsOfRefreshed = append(slices.Clone(attackOnMeans),
	`SELECT sex, town, age, hours, flag, pay, bonus FROM payroll`,
	`SELECT count(*) FROM payroll`)

func refreshedPayroll(t *testing.T, name string) (*refreshed, *proxied) {
	t.Helper()
	r := &refreshed{direct: payrollDatabase(t, name, `CREATE TABLE saved AS SELECT * FROM payroll; REVOKE ALL ON saved FROM PUBLIC;`), user: shared.reader(t)}
	p := serveDatabase(t, name)
	r.reader = connect(t, p.dsn(r.user))
	return r, p
}

// answers are those to all questions, sorted.
func (r *refreshed) answers(t *testing.T, conn *pgx.Conn) (out []string) {
	t.Helper()
	for _, sql := range questionsOfRefreshed {
		rows := rowsOf(t, conn, sql)
		slices.Sort(rows)
		out = append(out, fmt.Sprintf("%s: %q", sql, rows))
	}
	return out
}

// refusal is what a reader sees where the means were not carried, by all
// questions and by the account of one; "" before that.
func (r *refreshed) refusal(t *testing.T, conn *pgx.Conn) (what string) {
	t.Helper()
	for _, sql := range append(slices.Clone(questionsOfRefreshed), `EXPLAIN (TAILOR) SELECT pay FROM payroll`) {
		var answer *pgconn.PgError
		if _, err := conn.Exec(t.Context(), sql); !errors.As(err, &answer) || answer.Code != "KA004" {
			if what != "" {
				t.Fatalf("%s: %v", sql, err)
			}
			return ""
		}
		said := fmt.Sprintf("%s|%s|%s", answer.Message, answer.Detail, answer.Hint)
		if what == "" {
			what = said
		}
		if said != what {
			t.Fatalf("one chain is refused in two ways: %s; %s", said, what)
		}
	}
	return what
}

// stored is all of the chain that is in the database.
func (r *refreshed) stored(t *testing.T) string {
	t.Helper()
	return one[string](t, r.direct, `SELECT coalesce(string_agg(md5(c::text), ' ' ORDER BY chain), '') FROM tailor.chain c`)
}

// inBlock is the token of somebody in a block of the least or the greatest size.
func (r *refreshed) inBlock(t *testing.T, order string) string {
	t.Helper()
	chain := table(t, r.direct, `SELECT chain, epoch FROM tailor.chain`)
	return one[string](t, r.direct, fmt.Sprintf(`
		SELECT token::text FROM (SELECT token, count(*) OVER (PARTITION BY b) AS n FROM (
			SELECT e.token, %s AS b FROM tailor_store.chain_%s_row r, tailor_store.epoch_%s e) x) y
		ORDER BY n %s, token LIMIT 1`, shownAlike(t, r.direct, chain[0][0]), chain[0][0], chain[0][1], order))
}

func TestMeansEndWhereARefreshChangesWhoIsInTheTableHoweverItDoes(t *testing.T) {
	r, p := refreshedPayroll(t, "means_refreshed")
	other := connect(t, serveDatabase(t, "means_refreshed").dsn(r.user))
	const (
		refresh  = `; CALL tailor.refresh('payroll')`
		newcomer = `INSERT INTO payroll SELECT 1000, sex, town, age, hours, flag, %s, bonus, unit FROM payroll WHERE id = 2` + refresh
	)
	var told string
	var before []string
	for _, world := range []struct{ claim, change string }{
		{"a block falls below k", `DELETE FROM payroll WHERE token = '@least'` + refresh},
		{"a block that stays above k loses somebody", `DELETE FROM payroll WHERE token = '@most'` + refresh},
		{"a newcomer has what somebody has", fmt.Sprintf(newcomer, "pay")},
		{"a newcomer has the least pay", fmt.Sprintf(newcomer, "0")},
		{"a newcomer has the most pay", fmt.Sprintf(newcomer, "19999")},
		{"a newcomer has labels of nobody", `INSERT INTO payroll VALUES (1000, 'X', 'z', 89, 1, 1, 10, 0, 'u1')` + refresh},
		{"somebody earns a cent more", `UPDATE payroll SET pay = pay + 0.01 WHERE id = 2` + refresh},
		{"somebody earns what is far off", `UPDATE payroll SET pay = 19999 WHERE id = 2` + refresh},
		{"somebody's pay is not known any more", `UPDATE payroll SET pay = NULL WHERE id = 2` + refresh},
		{"somebody has moved", `UPDATE payroll SET town = 't5' WHERE id = 2` + refresh},
		{"somebody has left and another has come", `DELETE FROM payroll WHERE id = 3; ` + fmt.Sprintf(newcomer, "pay")},
		{"k has risen above a block", `CALL tailor.protect('payroll', 'id', 12); CALL tailor.activate('payroll')`},
		{"a block has one unit only", `UPDATE payroll SET unit = 'u1' WHERE sex = 'F' AND town = 't1'` + refresh},
		{"a block is to have more units", `CALL tailor.require('payroll', 'l_diversity', 'unit', 3); CALL tailor.activate('payroll')`},
		{"a label is another", `CALL tailor.define_hierarchy('letters', 'prefix', '{"keep": [2]}'); CALL tailor.activate('payroll')`},
	} {
		exec1(t, r.direct, `TRUNCATE payroll; INSERT INTO payroll SELECT * FROM saved; CALL tailor.define_hierarchy('letters', 'prefix', '{"keep": [1]}');
			CALL tailor.protect('payroll', 'id', 5); CALL tailor.require('payroll', 'l_diversity', 'unit', 2);
			CALL tailor.activate('payroll'); CALL tailor.forget_chains('payroll')`)
		for _, conn := range []*pgx.Conn{r.reader, other} {
			waitFor(t, func() bool { _, err := conn.Exec(t.Context(), `SELECT avg(pay) FROM payroll`); return err == nil })
			r.answers(t, conn)
		}
		answers := r.answers(t, r.reader)
		if before == nil {
			before = answers
		}
		if !slices.Equal(answers, before) {
			t.Fatalf("%s: the worlds differ before the refresh", world.claim)
		}
		stored := r.stored(t)
		exec1(t, r.direct, strings.NewReplacer("@least", r.inBlock(t, "ASC"), "@most", r.inBlock(t, "DESC")).Replace(world.change))
		for i, conn := range []*pgx.Conn{r.reader, other} {
			what := ""
			waitFor(t, func() bool { what = r.refusal(t, conn); return what != "" })
			if told == "" {
				told = what
			}
			if what != told {
				t.Errorf("%s: proxy %d says\n%s\nand otherwise\n%s", world.claim, i, what, told)
			}
		}
		if r.stored(t) != stored {
			t.Errorf("%s: the chain is stored as something else", world.claim)
		}
	}
	if strings.ContainsAny(told, "0123456789") || !strings.Contains(told, "tailor.forget_chains('public.payroll')") {
		t.Errorf("it is said: %s", told)
	}
	// A restart changes nothing of it.
	p.stop(t)
	again := connect(t, serveDatabase(t, "means_refreshed").dsn(r.user))
	if what := r.refusal(t, again); what != told {
		t.Errorf("after a restart: %s", what)
	}
	exec1(t, r.direct, `CALL tailor.forget_chains('payroll')`)
	waitFor(t, func() bool { _, err := again.Exec(t.Context(), `SELECT avg(pay) FROM payroll`); return err == nil })
}

func TestARefreshThatChangesPayloadOnlyShowsTheSameMeans(t *testing.T) {
	r, p := refreshedPayroll(t, "means_carried")
	r.answers(t, r.reader)
	before := r.answers(t, r.reader)
	stored := `SELECT concat_ws(' ', md5(partition), md5(means), blocks, min_block) FROM tailor.chain`
	bytes := one[string](t, r.direct, stored)
	carried := `SELECT c.epoch = p.epoch FROM tailor.chain c JOIN tailor.protection p USING (relation)`
	for _, change := range []string{
		`SELECT 1`,
		`UPDATE payroll SET unit = 'v' || id % 7`,
		`UPDATE payroll SET id = id + 5000, token = gen_random_uuid()`, // others, with what those had
		`UPDATE payroll p SET pay = o.pay, town = o.town, sex = o.sex, age = o.age, hours = o.hours, flag = o.flag, bonus = o.bonus FROM payroll o
			WHERE (p.id, o.id) IN ((5002, 5011), (5011, 5002))`,
	} {
		exec1(t, r.direct, change)
		exec1(t, r.direct, `CALL tailor.refresh('payroll')`)
		waitFor(t, func() bool {
			_, err := r.reader.Exec(t.Context(), `SELECT avg(pay) FROM payroll`)
			return err == nil && one[bool](t, r.direct, carried)
		})
		if after := r.answers(t, r.reader); !slices.Equal(after, before) {
			t.Errorf("%s: the answers are\n%v\nand were\n%v", change, after, before)
		}
		if again := one[string](t, r.direct, stored); again != bytes {
			t.Errorf("%s: the chain is %s, and was %s", change, again, bytes)
		}
	}
	// A chain that was refused goes on where the table is what it was.
	exec1(t, r.direct, `UPDATE payroll SET pay = pay + 1 WHERE id = 5002; CALL tailor.refresh('payroll')`)
	waitFor(t, func() bool { return r.refusal(t, r.reader) != "" })
	exec1(t, r.direct, `UPDATE payroll SET pay = pay - 1 WHERE id = 5002; CALL tailor.refresh('payroll')`)
	waitFor(t, func() bool { _, err := r.reader.Exec(t.Context(), `SELECT avg(pay) FROM payroll`); return err == nil })
	if after := r.answers(t, r.reader); !slices.Equal(after, before) {
		t.Errorf("the answers are\n%v\nand were\n%v", after, before)
	}
	// Groups split on from where they were, as they would have without a refresh.
	finer := `SELECT hours, age, avg(pay) FROM payroll GROUP BY 1, 2 ORDER BY 1, 2`
	after := rowsOf(t, r.reader, finer)
	exec1(t, r.direct, `CALL tailor.forget_chains('payroll')`)
	p.stop(t)
	conn := connect(t, serveDatabase(t, "means_carried").dsn(r.user))
	r.answers(t, conn)
	if straight := rowsOf(t, conn, finer); !slices.Equal(straight, after) {
		t.Errorf("%v\nand without refreshes\n%v", after, straight)
	}
}

func TestAChainIsNotCarriedWhetherOrNotItHasBeenRead(t *testing.T) {
	r, p := refreshedPayroll(t, "means_unread")
	rowsOf(t, r.reader, `EXPLAIN (TAILOR) SELECT avg(pay) FROM payroll`)
	exec1(t, r.direct, `DELETE FROM payroll WHERE id = 2; CALL tailor.refresh('payroll')`)
	waitFor(t, func() bool { return r.refusal(t, r.reader) != "" })
	// Who comes later is a new audience.
	exec1(t, r.direct, `CREATE ROLE means_latecomer LOGIN PASSWORD 'means_latecomer'; CALL tailor.grant_reader('means_latecomer')`)
	if n := one[int](t, connect(t, p.dsn("means_latecomer")), `SELECT count(*) FROM payroll`); n != 639 {
		t.Errorf("%d rows", n)
	}
}
