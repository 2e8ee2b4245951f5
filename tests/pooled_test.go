package tests

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"hash/maphash"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// attribute is a quasi-identifier as random queries name it, with what may be asked
// about its value.
type attribute struct {
	name      string
	condition func(rng *rand.Rand) string // without the name: "> 40"
}

// oneOf is a condition that compares with one of some texts, or with all but one.
func oneOf(values ...string) func(*rand.Rand) string {
	return func(rng *rand.Rand) string {
		return []string{"= ", "<> ", "> "}[rng.IntN(3)] + "'" + values[rng.IntN(len(values))] + "'"
	}
}

// within is a condition on a number of a range.
func within(low, high int) func(*rand.Rand) string {
	return func(rng *rand.Rand) string {
		from := low + rng.IntN(high-low)
		return fmt.Sprintf("BETWEEN %d AND %d", from, from+rng.IntN(high-from+1))
	}
}

// since is a condition on a date of some years.
func since(from, to int) func(*rand.Rand) string {
	return func(rng *rand.Rand) string {
		return fmt.Sprintf("%s date '%d-%02d-11'", []string{"<", ">="}[rng.IntN(2)],
			from+rng.IntN(to-from+1), 1+rng.IntN(12))
	}
}

// startsWith is a condition on the first character of a text.
func startsWith(characters string) func(*rand.Rand) string {
	return func(rng *rand.Rand) string {
		return fmt.Sprintf("LIKE '%c%%'", characters[rng.IntN(len(characters))])
	}
}

// source is what random queries can be asked of: a FROM list, the token of its rows,
// and the quasi-identifiers of everything in it.
type source struct {
	of         string // the table whose rows the token names
	token      string
	from       string
	attributes []attribute
	further    []string // columns of unprotected tables
}

// draw makes a query whose first column is the token. Conditions are on
// quasi-identifiers only: who is left out by a condition on payload is left out
// whatever its block is. For the same reason there is no LIMIT.
func (s source) draw(rng *rand.Rand) string {
	some := func(least int) []attribute {
		all := slices.Clone(s.attributes)
		rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		return all[:least+rng.IntN(len(all)-least+1)]
	}
	list := []string{s.token}
	for _, a := range some(1) {
		switch rng.IntN(10) {
		case 0:
			list = append(list, fmt.Sprintf("count(*) OVER (PARTITION BY %s)", a.name))
		case 1:
			list = append(list, fmt.Sprintf("CASE WHEN %s %s THEN 'yes' ELSE 'no' END", a.name,
				a.condition(rng)))
		case 2:
			list = append(list, fmt.Sprintf("%s::text", a.name))
		default:
			list = append(list, a.name)
		}
	}
	if len(s.further) > 0 {
		list = append(list, s.further[rng.IntN(len(s.further))])
	}
	sql := "SELECT " + strings.Join(list, ", ") + " FROM " + s.from
	if conditions := some(0); rng.IntN(2) == 0 && len(conditions) > 0 {
		var terms []string
		for _, a := range conditions[:min(len(conditions), 3)] {
			terms = append(terms, a.name+" "+a.condition(rng))
		}
		sql += " WHERE " + strings.Join(terms, []string{" AND ", " OR "}[rng.IntN(2)])
	}
	if rng.IntN(3) == 0 {
		sql += " ORDER BY " + some(1)[0].name + []string{"", " DESC"}[rng.IntN(2)]
	}
	return sql
}

// everything is the query for all quasi-identifiers.
func (s source) everything() string {
	var list []string
	for _, a := range s.attributes {
		list = append(list, a.name)
	}
	return "SELECT " + s.token + ", " + strings.Join(list, ", ") + " FROM " + s.from
}

// fact is what the table itself says of a row.
type fact struct{ subject, sensitive string }

// pooled is the common refinement of answers about one table, of all readers who
// pool them. Rows are known by a token: one letter and a number from 0 without gaps,
// which stands for an attacker's perfect knowledge of payloads.
type pooled struct {
	facts   []fact
	class   []int32 // of each row
	classes int
	seed    maphash.Seed
}

// newPooled reads tokens, subjects and sensitive values from the table itself.
func newPooled(t *testing.T, direct *pgx.Conn, sql string) *pooled {
	t.Helper()
	rows, err := direct.Query(t.Context(), sql)
	if err != nil {
		t.Fatal(err)
	}
	p := &pooled{seed: maphash.MakeSeed(), classes: 1}
	var token, subject, sensitive string
	if _, err := pgx.ForEachRow(rows, []any{&token, &subject, &sensitive}, func() error {
		n, err := strconv.Atoi(token[1:])
		if err != nil {
			return err
		}
		for n >= len(p.facts) {
			p.facts = append(p.facts, fact{})
		}
		p.facts[n] = fact{subject, sensitive}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	for n, f := range p.facts {
		if f.subject == "" {
			t.Fatalf("no row has token %d", n)
		}
	}
	p.class = make([]int32, len(p.facts))
	return p
}

// again is a common refinement of nothing yet, over the same rows.
func (p *pooled) again() *pooled {
	return &pooled{facts: p.facts, class: make([]int32, len(p.facts)), classes: 1, seed: p.seed}
}

// answer asks a query whose first column is the token and refines by what each row
// is shown with: rows that are not in the answer are told apart by that.
func (p *pooled) answer(t *testing.T, conn *pgx.Conn, sql string) (rows int) {
	t.Helper()
	shown := make([]uint64, len(p.class)) // a sum, whatever the order of the rows
	var line []byte
	results := conn.PgConn().Exec(t.Context(), sql)
	for results.NextResult() {
		for r := results.ResultReader(); r.NextRow(); rows++ {
			values := r.Values()
			line = line[:0]
			for _, v := range values[1:] {
				line = strconv.AppendInt(line, int64(len(v)), 10)
				line = append(append(line, map[bool]byte{true: '?', false: ':'}[v == nil]), v...)
			}
			n, err := strconv.Atoi(string(values[0][1:]))
			if err != nil || n >= len(shown) {
				t.Fatalf("%s: a row that is not in the table: %q", sql, values[0])
			}
			shown[n] += maphash.Bytes(p.seed, line)
		}
	}
	if err := results.Close(); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	p.refine(shown)
	return rows
}

func (p *pooled) refine(shown []uint64) {
	type part struct {
		class int32
		shown uint64
	}
	parts := make(map[part]int32)
	for row, class := range p.class {
		at := part{class, shown[row]}
		number, known := parts[at]
		if !known {
			number = int32(len(parts))
			parts[at] = number
		}
		p.class[row] = number
	}
	p.classes = len(parts)
}

// refineBy adds what other answers about the same rows tell.
func (p *pooled) refineBy(others *pooled) {
	shown := make([]uint64, len(p.class))
	for row, class := range others.class {
		shown[row] = uint64(class)
	}
	p.refine(shown)
}

// model is what each class has to meet: distinct subjects, distinct sensitive values,
// and the largest share of its rows that one subject owns; 0 asks for nothing.
type model struct {
	k, l  int
	share float64
}

// assertMeets asserts that every class meets a model, and that there are classes.
func (p *pooled) assertMeets(t *testing.T, claim string, want model) {
	t.Helper()
	summary, faults := p.check(want)
	t.Logf("%s: %s", claim, summary)
	for _, fault := range faults {
		t.Errorf("%s: %s", claim, fault)
	}
}

// check counts what every class holds, and says where that is not what a model wants.
func (p *pooled) check(want model) (summary string, faults []string) {
	type content struct {
		rows      int
		subjects  map[string]int
		sensitive map[string]bool
	}
	classes := make([]content, p.classes)
	for row, class := range p.class {
		c := &classes[class]
		if c.subjects == nil {
			*c = content{subjects: make(map[string]int), sensitive: make(map[string]bool)}
		}
		c.rows++
		c.subjects[p.facts[row].subject]++
		c.sensitive[p.facts[row].sensitive] = true
	}
	few, alike, owned := 0, 0, 0
	least, diverse, largest := len(p.class), len(p.class), 0.0
	for _, c := range classes {
		most := 0
		for _, rows := range c.subjects {
			most = max(most, rows)
		}
		share := float64(most) / float64(c.rows)
		least, diverse, largest = min(least, len(c.subjects)), min(diverse, len(c.sensitive)),
			max(largest, share)
		if len(c.subjects) < want.k {
			few += len(c.subjects)
		}
		if len(c.sensitive) < want.l {
			alike += len(c.subjects)
		}
		if want.share > 0 && share > want.share {
			owned++
		}
	}
	summary = fmt.Sprintf("%d rows, %d classes of %d subjects and %d sensitive values or more; "+
		"nobody owns more than %.2f",
		len(p.class), p.classes, least, diverse, largest)
	if few > 0 {
		faults = append(faults, fmt.Sprintf("%d subjects in classes of fewer than %d", few, want.k))
	}
	if alike > 0 {
		faults = append(faults, fmt.Sprintf("%d subjects in classes with fewer than %d sensitive values",
			alike, want.l))
	}
	if owned > 0 {
		faults = append(faults, fmt.Sprintf("in %d classes a subject owns more than %.2f of the rows",
			owned, want.share))
	}
	if p.classes < 10 {
		faults = append(faults, fmt.Sprintf("%d classes are too few to check anything", p.classes))
	}
	return summary, faults
}

// TestPoolingFindsWhatTwoPartitionsTellTogether is the checker's own test: two ways
// to put a hundred rows into tens have k each by itself, and not together.
func TestPoolingFindsWhatTwoPartitionsTellTogether(t *testing.T) {
	rows := make([]fact, 100)
	for n := range rows {
		rows[n] = fact{subject: strconv.Itoa(n), sensitive: strconv.Itoa(n % 4)}
	}
	for _, n := range []int{10, 20, 30} { // one subject has four rows
		rows[n].subject = rows[0].subject
	}
	by := func(block func(n int) int) (shown []uint64) {
		for n := range rows {
			shown = append(shown, uint64(block(n)))
		}
		return shown
	}
	nothing := &pooled{facts: rows, class: make([]int32, len(rows)), classes: 1}
	want := model{k: 5, l: 2, share: 0.3}
	tens, units, half := by(func(n int) int {
		return n / 10
	}), by(func(n int) int { return n % 10 }), by(func(n int) int { return n / 50 })
	for claim, test := range map[string]struct {
		shown  [][]uint64
		faults int
	}{
		"one partition":                               {[][]uint64{tens}, 0},
		"one partition and its halves":                {[][]uint64{half, tens, half}, 0},
		"another one, where a subject owns four rows": {[][]uint64{units}, 1},
		"both":      {[][]uint64{tens, units}, 3},
		"all alike": {[][]uint64{by(func(int) int { return 1 })}, 1},
	} {
		t.Run(claim, func(t *testing.T) {
			p := nothing.again()
			for _, shown := range test.shown {
				p.refine(shown)
			}
			if summary, faults := p.check(want); len(faults) != test.faults {
				t.Errorf("%d faults, want %d: %s: %q", len(faults), test.faults, summary, faults)
			}
		})
	}
}

// askInTurn has readers ask random queries of some sources through their own
// connections, every other reader for values in place of labels. What is asked is
// a function of the seed.
func askInTurn(
	t *testing.T, conns []*pgx.Conn, queries int, seed uint64, sources []source,
	into map[string]*pooled,
) (rows int) {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 22))
	for reader, conn := range conns {
		mustExec(t, conn, "SET tailor.representation = '"+[]string{"auto", "value"}[reader%2]+"'")
	}
	// One query of each reader, then the next of each: chains that depended on who
	// asked what before would drift apart.
	for range queries {
		for _, conn := range conns {
			s := sources[rng.IntN(len(sources))]
			rows += into[s.of].answer(t, conn, s.draw(rng))
		}
	}
	return rows
}

// admitMany makes readers in one statement, as members of a group that reads: all with
// one password, the prefix.
func admitMany(t *testing.T, direct *pgx.Conn, prefix string, readers int) []string {
	t.Helper()
	mustExec(t, direct, fmt.Sprintf(`CREATE ROLE %[1]s; CALL tailor.grant_reader('%[1]s')`, prefix))
	mustExec(t, direct, fmt.Sprintf(`DO $$ BEGIN
		FOR n IN 0 .. %d LOOP
			EXECUTE format('CREATE ROLE %%I LOGIN PASSWORD %%L IN ROLE %[2]s', '%[2]s_' || n, '%[3]s');
		END LOOP;
	END $$`, readers-1, prefix, cheapVerifier(prefix)))
	names := make([]string, readers)
	for n := range names {
		names[n] = fmt.Sprintf("%s_%d", prefix, n)
	}
	return names
}

// cheapVerifier is what PostgreSQL keeps of a password, of one iteration in place of
// 4,096: what many logins of a test are to cost is not hashing.
func cheapVerifier(password string) string {
	mac := func(key []byte, text string) []byte {
		h := hmac.New(sha256.New, key)
		h.Write([]byte(text))
		return h.Sum(nil)
	}
	const salt = "salt of a test"
	salted := mac([]byte(password), salt+"\x00\x00\x00\x01") // PBKDF2 with one iteration
	stored := sha256.Sum256(mac(salted, "Client Key"))
	encode := base64.StdEncoding.EncodeToString
	return fmt.Sprintf("SCRAM-SHA-256$1:%s$%s:%s", encode([]byte(salt)), encode(stored[:]),
		encode(mac(salted, "Server Key")))
}

// dsnOf is the address for a reader whose password is not its name.
func (p *testProxy) dsnOf(user, password string) string {
	return fmt.Sprintf("postgres://%s:%s@%s/%s?sslmode=disable", user, password, p.address, p.database)
}

// readers are sessions of new readers.
func (p *testProxy) readers(
	t *testing.T, direct *pgx.Conn, prefix string, n int,
) (conns []*pgx.Conn) {
	t.Helper()
	for _, name := range admitMany(t, direct, prefix, n) {
		conns = append(conns, connect(t, p.dsnOf(name, prefix)))
	}
	return conns
}
