package catalog

import (
	"context"
	"fmt"
	"math"
	"strings"

	"github.com/jackc/pgx/v5"
)

// standing is what the copy says of a row that is shown.
type standing int

const (
	staying  standing = iota
	leaving           // the copy has it no more
	changing          // it has another payload
)

// member is a row of a block.
type member struct {
	person int64
	standing
	// The sensitive values that models look at, as hashes: as they are shown, and as
	// the copy has them.
	shown, now []int64
}

// block is a block of which some rows leave or change.
type block struct {
	number  int
	members []member
}

// subjects counts those with a row of a standing.
func (b *block) subjects(of standing) int {
	persons := make(map[int64]struct{})
	for i := range b.members {
		if b.members[i].standing == of {
			persons[b.members[i].person] = struct{}{}
		}
	}
	return len(persons)
}

// happening is what becomes visible of a block.
type happening struct {
	block   int
	leaves  bool // who leaves is gone
	changes bool // what has changed is shown
	splits  bool // who has changed is not all that is left
	becomes int  // the number of the block of those who have changed
}

// needs is what each class of people must meet that is told apart by what happened to
// it.
type needs struct {
	subjects  int
	share     float64 // the most of a class's rows that one subject may own
	diversity []int   // of each sensitive column
}

// needs of a relation. A gate that looks at an average is kept where no class is
// smaller than the average may be.
func (t *takingIn) needs() needs {
	n := needs{subjects: t.r.K, share: 1}
	if t.r.Gate == "average" && t.r.MaxRisk > 0 {
		n.subjects = max(n.subjects, int(math.Ceil(1/t.r.MaxRisk)))
	}
	if !t.personal {
		n.share = t.r.MaxShare
	}
	for _, q := range t.r.Requirements {
		n.diversity = append(n.diversity, int(q.Parameter))
	}
	return n
}

// class is a set of rows with the sensitive values that are shown of them.
type class struct {
	rows   map[int64]int // by subject
	all    int
	values []map[int64]struct{}
}

func (c *class) add(person int64, values []int64) {
	if c.rows == nil {
		c.rows, c.values = make(map[int64]int), make([]map[int64]struct{}, len(values))
		for i := range values {
			c.values[i] = make(map[int64]struct{})
		}
	}
	c.rows[person]++
	c.all++
	for i, v := range values {
		c.values[i][v] = struct{}{}
	}
}

// meets says whether nobody of a class can be told from the others. A class without
// rows has nobody.
func (n needs) meets(c *class) bool {
	if c.all == 0 {
		return true
	}
	if len(c.rows) < n.subjects {
		return false
	}
	for _, rows := range c.rows {
		if float64(rows) > n.share*float64(c.all) && n.share < 1 {
			return false
		}
	}
	for i, least := range n.diversity {
		if len(c.values[i]) < least {
			return false
		}
	}
	return true
}

// decide chooses what becomes visible of a block. Whoever knows of everybody when he
// came, changed and went can tell apart those who leave, those who change and those
// who do neither: each of these classes meets what the block meets, or nothing
// happens.
func (b *block) decide(n needs) happening {
	for _, h := range []happening{{leaves: true, changes: true}, {changes: true}, {leaves: true}} {
		var gone, before, after, rest class
		for i := range b.members {
			m := &b.members[i]
			switch {
			case m.standing == leaving && h.leaves:
				gone.add(m.person, m.shown)
			case m.standing == changing && h.changes:
				before.add(m.person, m.shown)
				after.add(m.person, m.now)
			default:
				rest.add(m.person, m.shown)
			}
		}
		h.leaves, h.changes, h.splits = gone.all > 0, after.all > 0, rest.all > 0
		if (h.leaves || h.changes) && n.meets(&gone) && n.meets(&before) && n.meets(&after) && n.meets(&rest) {
			return h
		}
	}
	return happening{}
}

// affected reads the blocks of which some rows leave or change.
func (t *takingIn) affected(ctx context.Context) ([]*block, error) {
	pending := t.temporary("pending")
	list := []string{"r." + blockColumn, "r." + personColumn, "CASE WHEN w.leaves IS NULL THEN 0 WHEN w.leaves THEN 1 ELSE 2 END"}
	from := fmt.Sprintf("%[1]s r LEFT JOIN %[2]s w ON (w.%[3]s, w.%[4]s, w.%[5]s) = (r.%[3]s, r.%[4]s, r.%[5]s)",
		t.chain.table("row"), pending, personColumn, keyColumn, nthColumn)
	if len(t.r.Requirements) > 0 {
		from += fmt.Sprintf(" LEFT JOIN tailor_store.epoch_%d e ON %s", t.r.Epoch, t.same("e", "r"))
	}
	for _, q := range t.r.Requirements {
		for _, of := range []string{"r", "e"} {
			list = append(list, fmt.Sprintf("hashtextextended(coalesce('=' || %s.%s::text, ''), 0)", of, ident(q.Column)))
		}
	}
	rows, err := t.tx.Query(ctx, fmt.Sprintf("SELECT %s FROM %s WHERE r.%[3]s IN (SELECT %[3]s FROM %[4]s) ORDER BY 1",
		strings.Join(list, ", "), from, blockColumn, pending))
	if err != nil {
		return nil, err
	}
	var out []*block
	values := make([]int64, len(list))
	into := make([]any, len(list))
	for i := range values {
		into[i] = &values[i]
	}
	_, err = pgx.ForEachRow(rows, into, func() error {
		if number := int(values[0]); len(out) == 0 || out[len(out)-1].number != number {
			out = append(out, &block{number: number})
		}
		m := member{person: values[1], standing: standing(values[2])}
		for i := 3; i < len(values); i += 2 {
			m.shown, m.now = append(m.shown, values[i]), append(m.now, values[i+1])
		}
		b := out[len(out)-1]
		b.members = append(b.members, m)
		return nil
	})
	return out, err
}

// assertSafe checks by itself what is about to be shown: each block, and those of each
// block who have gone together, are enough subjects and meet the other models.
func (t *takingIn) assertSafe(ctx context.Context) error {
	holds := []string{fmt.Sprintf("count(DISTINCT %s) >= %d", personColumn, t.r.K)}
	if t.personal {
		holds[0] = fmt.Sprintf("count(*) >= %d", t.r.K)
	}
	for _, q := range t.r.Requirements {
		holds = append(holds, fmt.Sprintf("count(DISTINCT %[1]s) + (count(*) > count(%[1]s))::integer >= %[2]d", ident(q.Column), int(q.Parameter)))
	}
	row := t.chain.table("row")
	checks := []string{
		fmt.Sprintf("SELECT FROM %s GROUP BY %s HAVING NOT (%s)", row, blockColumn, strings.Join(holds, " AND ")),
		fmt.Sprintf("SELECT FROM %s WHERE epoch = %d GROUP BY %s HAVING count(DISTINCT %s) < %d", t.chain.table("gone"), t.r.Epoch, blockColumn, personColumn, t.r.K),
	}
	if t.personal {
		checks = append(checks, fmt.Sprintf("SELECT FROM %s GROUP BY %s HAVING count(*) > 1", row, personColumn))
	} else {
		checks = append(checks, fmt.Sprintf(`SELECT FROM (SELECT %[2]s, count(*) AS "tailor rows" FROM %[1]s GROUP BY %[2]s, %[3]s) t
			GROUP BY %[2]s HAVING max("tailor rows") > %[4]g * sum("tailor rows")`, row, blockColumn, personColumn, t.r.MaxShare))
	}
	for _, check := range checks {
		var unsafe int
		if err := t.tx.QueryRow(ctx, fmt.Sprintf("SELECT count(*) FROM (%s) unsafe", check)).Scan(&unsafe); err != nil {
			return fmt.Errorf("check: %w", err)
		}
		if unsafe > 0 {
			return errUnsafe(t.r, unsafe)
		}
	}
	return nil
}
