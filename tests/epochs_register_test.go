package tests

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// enrolled is a person of a register: quasi-identifiers, which the attacker knows
// at any time, and a payload, which he wants to know.
type enrolled struct {
	id, age   int
	zip, sex  string
	diagnosis string
	cost      int
}

// seen is what an answer shows of one person: the labels of all quasi-identifiers,
// the values that stand beside them, and the payload, column by column.
type seen struct {
	labels, values string
	payload        []string
}

// register is a protected table, the truth about it, and everything that its
// readers were shown at each epoch. The token marks a person's rows for the checker;
// the attacker does not know whose it is.
type register struct {
	t      *testing.T
	direct *pgx.Conn
	// reader asks at each epoch, before and after it was made.
	reader  *pgx.Conn
	proxy   *testProxy
	table   string
	k       int
	people  map[string]*enrolled // by token, everybody who was ever in the table
	present map[string]bool
	answers []map[string]seen
	ks      []int // of the policy at each answer
	random  *rand.Rand
	last    int // the highest id
}

// clinicOffice is a database with registers, one a test, that share a proxy.
type clinicOffice struct {
	direct *pgx.Conn
	proxy  *testProxy
	name   string
	tables int
}

var ailments = []string{
	"flu", "asthma", "diabetes", "migraine", "eczema", "anaemia", "gout",
	"ulcer", "sciatica", "bronchitis", "goitre", "psoriasis",
}

func openOffice(t *testing.T, name string) *clinicOffice {
	t.Helper()
	direct := makeDatabase(t, name, "")
	if err := shared.install(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	mustExec(t, direct, `CALL tailor.grant_reader('researcher');
		CALL tailor.define_hierarchy('age', 'interval',
			'{"widths": [5, 10, 20, 40], "lower": 0, "upper": 119}');
		CALL tailor.define_hierarchy('zip', 'prefix', '{"keep": [4, 3, 2, 1]}');
		CALL tailor.define_hierarchy('sex', 'table', '{"paths": [["female"], ["male"]]}');
		CALL tailor.define_hierarchy('day', 'date',
			'{"levels": ["month", "year", "decade"], "lower": "1900-01-01", "upper": "2029-12-31"}')`)
	return &clinicOffice{direct: direct, proxy: serveDatabase(t, name), name: name}
}

// crowdSize is how many people of a register have the same quasi-identifiers as
// others: a block that has room for parts of at least k.
const crowdSize = 40

// crowds are the quasi-identifiers of the two crowds.
var crowds = []enrolled{
	{age: 111, zip: "90001", sex: "female"},
	{age: 7, zip: "10009", sex: "male"},
}

// register makes a table of people, protects it, and asks for all of it.
// requirements are further calls of its policy.
func (o *clinicOffice) register(t *testing.T, people int, requirements ...string) *register {
	t.Helper()
	o.tables++
	r := &register{
		t: t, direct: o.direct, proxy: o.proxy, table: fmt.Sprintf("register_%d", o.tables), k: 5,
		last:   o.tables * 1_000_000,
		people: make(map[string]*enrolled), present: make(map[string]bool),
		random: rand.New(rand.NewPCG(2027, uint64(o.tables))),
	}
	r.exec(`CREATE TABLE $ (id int PRIMARY KEY, age int NOT NULL, zip text NOT NULL, ` +
		`sex text NOT NULL, diagnosis text, cost int, token text NOT NULL UNIQUE)`)
	var all []*enrolled
	for _, c := range crowds {
		for range crowdSize {
			p := r.person()
			p.age, p.zip, p.sex = c.age, c.zip, c.sex
			all = append(all, p)
		}
	}
	for len(all) < people {
		all = append(all, r.person())
	}
	r.enrol(all...)
	r.exec(`CALL tailor.protect('$', subject => 'id', k => 5);
		CALL tailor.classify('$', 'id', 'direct_identifier');
		CALL tailor.classify('$', 'age', 'quasi_identifier', hierarchy => 'age');
		CALL tailor.classify('$', 'zip', 'quasi_identifier', hierarchy => 'zip');
		CALL tailor.classify('$', 'sex', 'quasi_identifier', hierarchy => 'sex');
		CALL tailor.classify('$', 'diagnosis', 'sensitive');
		CALL tailor.classify('$', 'cost', 'non_sensitive');
		CALL tailor.classify('$', 'token', 'non_sensitive')`)
	for _, call := range requirements {
		r.exec(call)
	}
	r.exec(`CALL tailor.activate('$')`)
	r.reader = connect(t, o.proxy.dsn("researcher"))
	answeredSoon(t, r.reader, "SELECT age FROM "+r.table)
	awaitTakenIn(t, r.direct, r.table, r.reader)
	r.look()
	return r
}

// exec runs a text with the table's name for each dollar sign.
func (r *register) exec(sql string) {
	r.t.Helper()
	mustExec(r.t, r.direct, strings.ReplaceAll(sql, "$", r.table))
}

// person draws somebody new. Some zip codes and ages are much more frequent than others.
func (r *register) person() *enrolled {
	r.last++
	zip := 35000 + int(300*r.random.Float64()*r.random.Float64())
	age := 18 + int(75*(r.random.Float64()+r.random.Float64())/2)
	return &enrolled{
		id: r.last, age: age, zip: fmt.Sprintf("%05d", zip),
		sex:       []string{"female", "male"}[r.random.IntN(2)],
		diagnosis: ailments[int(float64(len(ailments))*r.random.Float64()*r.random.Float64())],
		cost:      100 + r.random.IntN(900),
	}
}

// enrol inserts people under tokens of their own.
func (r *register) enrol(people ...*enrolled) (tokens []string) {
	r.t.Helper()
	for _, p := range people {
		token := fmt.Sprintf("t%d", p.id)
		r.people[token] = p
		tokens = append(tokens, token)
	}
	r.back(tokens)
	return tokens
}

// arrive inserts people who have never been there.
func (r *register) arrive(n int) []string {
	r.t.Helper()
	people := make([]*enrolled, n)
	for i := range people {
		people[i] = r.person()
	}
	return r.enrol(people...)
}

// back inserts people as they were when they were last there.
func (r *register) back(tokens []string) {
	r.t.Helper()
	var rows [][]any
	for _, token := range tokens {
		p := r.people[token]
		r.present[token] = true
		rows = append(rows, []any{p.id, p.age, p.zip, p.sex, p.diagnosis, p.cost, token})
	}
	columns := []string{"id", "age", "zip", "sex", "diagnosis", "cost", "token"}
	if _, err := r.direct.CopyFrom(r.t.Context(), pgx.Identifier{r.table}, columns,
		pgx.CopyFromRows(rows)); err != nil {
		r.t.Fatal(err)
	}
}

func (r *register) leave(tokens []string) {
	r.t.Helper()
	mustExec(r.t, r.direct, "DELETE FROM "+r.table+" WHERE token = ANY($1)", tokens)
	for _, token := range tokens {
		delete(r.present, token)
	}
}

// change gives people another diagnosis, which nobody has had, and another cost.
func (r *register) change(tokens []string) {
	r.t.Helper()
	for _, token := range tokens {
		p := r.people[token]
		r.set(token, fmt.Sprintf("%s, epoch %d", p.diagnosis, len(r.answers)), p.cost+10_000)
	}
}

// set writes a payload.
func (r *register) set(token, diagnosis string, cost int) {
	r.t.Helper()
	r.people[token].diagnosis, r.people[token].cost = diagnosis, cost
	mustExec(r.t, r.direct, "UPDATE "+r.table+" SET diagnosis = $2, cost = $3 WHERE token = $1", token,
		diagnosis, cost)
}

// move gives people another zip code, far away.
func (r *register) move(tokens []string) {
	r.t.Helper()
	for i, token := range tokens {
		p := r.people[token]
		p.zip = fmt.Sprintf("%05d", 90010+i%5)
		mustExec(r.t, r.direct, "UPDATE "+r.table+" SET zip = $2 WHERE token = $1", token, p.zip)
	}
}

// refresh makes an epoch, waits until it is what readers are shown, and reads it.
func (r *register) refresh() {
	r.t.Helper()
	r.exec(`CALL tailor.refresh('$')`)
	awaitTakenIn(r.t, r.direct, r.table, r.reader)
	r.look()
}

// restrict puts the same policy with another k into force.
func (r *register) restrict(k int) {
	r.t.Helper()
	r.k = k
	r.exec(fmt.Sprintf(`CALL tailor.protect('$', 'id', %d); CALL tailor.activate('$')`, k))
	awaitTakenIn(r.t, r.direct, r.table, r.reader)
	r.look()
}

// awaitTakenIn waits until what readers are shown of a table follows from its newest
// copy. Readers go on asking meanwhile, and are answered or told to ask again.
func awaitTakenIn(t *testing.T, direct *pgx.Conn, relation string, readers ...*pgx.Conn) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for !one[bool](t, direct,
		`SELECT EXISTS (SELECT FROM tailor.chain WHERE relation = $1::text::regclass)
			AND NOT EXISTS (SELECT FROM tailor.chain c JOIN tailor.protection p USING (relation)
			WHERE c.epoch < p.epoch AND p.relation = $1::text::regclass)`, relation) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: a new copy is not taken in", relation)
		}
		for _, reader := range readers {
			if _, err := reader.PgConn().Exec(t.Context(), "SELECT count(*) FROM "+relation).
				ReadAll(); err != nil && codeIn(err) != "40001" && codeIn(err) != "KA001" {
				t.Fatalf("a reader during a refresh: %v", err)
			}
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// look reads everything, of one epoch.
func (r *register) look() {
	r.t.Helper()
	epoch := func() int {
		return one[int](r.t, r.direct,
			`SELECT max(epoch) FROM tailor.chain WHERE relation = $1::text::regclass`, r.table)
	}
	for {
		before := epoch()
		answer := lookAt(r.t, r.reader, r.table)
		if epoch() == before {
			r.answers = append(r.answers, answer)
			break
		}
	}
	r.ks = append(r.ks, r.k)
}

// lookAt reads all of a register as labels and as values.
func lookAt(t *testing.T, reader *pgx.Conn, table string) map[string]seen {
	t.Helper()
	mustExec(t, reader, "SET tailor.representation = 'label'")
	answer := make(map[string]seen)
	// Nobody is shown, which is refused as soon as the proxy has heard of it.
	if rows, err := reader.PgConn().Exec(t.Context(), "SELECT token FROM "+table+" LIMIT 1").
		ReadAll(); codeIn(err) == "KA001" || err == nil && len(rows[0].Rows) == 0 {
		return answer
	}
	for _, row := range sortedRows(t, reader,
		"SELECT token, age, zip, sex, coalesce(diagnosis, '(withheld)'), cost FROM "+table) {
		cells := strings.Split(row, "|")
		s := answer[cells[0]]
		s.labels = strings.TrimPrefix(s.labels+" & "+strings.Join(cells[1:4], "|"), " & ")
		s.payload = append(s.payload, cells[4:]...)
		answer[cells[0]] = s
	}
	mustExec(t, reader, "SET tailor.representation = 'value'")
	for _, row := range sortedRows(t, reader, "SELECT token, age, zip, sex FROM "+table) {
		token, values, _ := strings.Cut(row, "|")
		s := answer[token]
		s.values = strings.TrimPrefix(s.values+" & "+values, " & ")
		answer[token] = s
	}
	mustExec(t, reader, "SET tailor.representation = 'label'")
	return answer
}

// sortedRows are rows of an answer in an order that is not the server's.
func sortedRows(t *testing.T, reader *pgx.Conn, sql string) []string {
	t.Helper()
	rows := rowsOf(t, reader, sql)
	slices.Sort(rows)
	return rows
}

// cells are the sets of people with the same labels in the newest answer, with at
// least and at most so many, smallest first.
func (r *register) cells(atLeast, atMost int) (cells [][]string) {
	r.t.Helper()
	by := make(map[string][]string)
	answer := r.answers[len(r.answers)-1]
	for _, token := range slices.Sorted(maps.Keys(answer)) {
		by[answer[token].labels] = append(by[answer[token].labels], token)
	}
	for _, labels := range slices.Sorted(maps.Keys(by)) {
		if n := len(by[labels]); n >= atLeast && n <= atMost {
			cells = append(cells, by[labels])
		}
	}
	slices.SortStableFunc(cells, func(a, b []string) int { return len(a) - len(b) })
	if len(cells) < 2 {
		r.t.Fatalf("%d cells of %d to %d people: nothing is tested", len(cells), atLeast, atMost)
	}
	return cells
}

// crowd are the people of a crowd, which is one cell.
func (r *register) crowd(nth int) (tokens []string) {
	r.t.Helper()
	for token, p := range r.people {
		if c := crowds[nth]; p.age == c.age && p.zip == c.zip && p.sex == c.sex {
			tokens = append(tokens, token)
		}
	}
	slices.Sort(tokens)
	if len(tokens) != crowdSize {
		r.t.Fatalf("%d people in the crowd", len(tokens))
	}
	return tokens
}

// strangers are n people of n cells, who are still there.
func (r *register) strangers(n int) (tokens []string) {
	r.t.Helper()
	cells := r.cells(r.k, 3*r.k)
	r.random.Shuffle(len(cells), func(i, j int) { cells[i], cells[j] = cells[j], cells[i] })
	for _, cell := range cells {
		there := slices.DeleteFunc(cell, func(token string) bool { return !r.present[token] })
		if len(tokens) < n && len(there) > 0 {
			tokens = append(tokens, there[0])
		}
	}
	if len(tokens) < n {
		r.t.Fatalf("%d cells, want %d", len(tokens), n)
	}
	return tokens
}

// shows wants all of some people in the newest answer, or none.
func (r *register) shows(tokens []string, want bool) {
	r.t.Helper()
	n := 0
	for _, token := range tokens {
		if _, is := r.answers[len(r.answers)-1][token]; is {
			n++
		}
	}
	if want && n < len(tokens) || !want && n > 0 {
		r.t.Errorf("at epoch %d %d of %d people are shown, want all: %v", len(r.answers), n,
			len(tokens), want)
	}
}

// showsChange wants the payload of all of some people to be the present one, or of none.
func (r *register) showsChange(tokens []string, want bool) {
	r.t.Helper()
	n := 0
	for _, token := range tokens {
		if s := r.answers[len(r.answers)-1][token]; len(s.payload) > 1 &&
			s.payload[0] == r.people[token].diagnosis && s.payload[1] == fmt.Sprint(r.people[token].cost) {
			n++
		}
	}
	if want && n < len(tokens) || !want && n > 0 {
		r.t.Errorf("at epoch %d the new payload of %d of %d people is shown, want all: %v",
			len(r.answers), n, len(tokens), want)
	}
}
