// Package demodata makes the synthetic hospital of the demo and the tests: the
// same rows for the same number of patients, with shapes that real data have
// (an age pyramid, areas of different size, rare diagnoses, a few people over
// a hundred, one patient with sixty visits).
package demodata

import (
	"context"
	_ "embed"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// Schema makes the tables.
//
//go:embed schema.sql
var Schema string

// Policy protects them, for a role that owns them and is a tailor_admin.
//
//go:embed policy.sql
var Policy string

// Study protects days and wards of visits, and declares what is computed of each patient from
// them. It comes after Policy.
//
//go:embed study.sql
var Study string

// DefaultPatients is the size of the demo.
const DefaultPatients = 50000

// MinPatients is the least number for which every planted case has room.
const MinPatients = 1000

// today is the day on which ages are counted.
var today = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// The planted person: tests look for these in every byte that a reader gets.
const (
	CanaryName = "Canaria Findley-Goldfinch"
	CanarySSN  = "987-65-4320"
	CanaryAge  = 103
	canaryID   = 777
)

// frequentVisitor is the patient with sixty visits.
const (
	frequentVisitor       = 500
	frequentVisitorVisits = 60
)

// patient is a row of the table patients.
type patient struct {
	id         int
	name, ssn  string
	birth      time.Time
	age        int
	sex        string
	race       *string
	zip, ward  string
	diagnosis  string
	cost       float64
	conditions []string
}

func (p *patient) row() []any {
	return []any{
		p.id, p.name, p.ssn, p.birth, p.age, p.sex, p.race, p.zip, p.ward, p.diagnosis,
		p.cost,
	}
}

// Fill writes the tables of a new schema.
func Fill(ctx context.Context, conn *pgx.Conn, patients int) error {
	if patients < MinPatients {
		return fmt.Errorf("at least %d patients are needed", MinPatients)
	}
	g := newGenerator()
	all := make([]*patient, patients)
	for i := range all {
		all[i] = g.patient(i + 1)
	}
	copies := []struct {
		table   string
		columns []string
		rows    [][]any
	}{
		{"zip_city", []string{"zip", "city"}, g.cityRows()},
		{"icd9", []string{"code", "category", "chapter"}, codeRows()},
		{"patients", []string{
			"id", "name", "ssn", "birth_date", "age", "sex", "race", "zip", "ward",
			"diagnosis", "cost",
		}, patientRows(all)},
		{"visits", []string{"id", "patient_id", "day", "ward", "cost"}, g.visitRows(all)},
		{"diagnoses", []string{"patient_id", "code"}, diagnosisRows(all)},
	}
	for _, c := range copies {
		if _, err := conn.CopyFrom(ctx, pgx.Identifier{c.table}, c.columns,
			pgx.CopyFromRows(c.rows)); err != nil {
			return fmt.Errorf("fill %s: %w", c.table, err)
		}
	}
	_, err := conn.Exec(ctx, "ANALYZE")
	return err
}

// Demographics are the quasi-identifiers of the patients, by row: birth_date, age, sex,
// race (empty for NULL) and zip.
func Demographics(patients int) [][]string {
	g := newGenerator()
	rows := make([][]string, patients)
	for i := range rows {
		p := g.patient(i + 1)
		race := ""
		if p.race != nil {
			race = *p.race
		}
		rows[i] = []string{p.birth.Format(time.DateOnly), strconv.Itoa(p.age), p.sex, race, p.zip}
	}
	return rows
}

func patientRows(all []*patient) [][]any {
	rows := make([][]any, len(all))
	for i, p := range all {
		rows[i] = p.row()
	}
	return rows
}

func diagnosisRows(all []*patient) [][]any {
	var rows [][]any
	for _, p := range all {
		for _, code := range p.conditions {
			rows = append(rows, []any{p.id, code})
		}
	}
	return rows
}

// codeRows are the code list: categories are the first three digits.
func codeRows() [][]any {
	rows := make([][]any, len(conditions))
	for i, c := range conditions {
		category, _, _ := strings.Cut(c.code, ".")
		rows[i] = []any{c.code, category, c.chapter()}
	}
	return rows
}

// chapter is that of ICD-9-CM.
func (c *condition) chapter() string {
	first := c.code[:3]
	for _, chapter := range chapters {
		if first <= chapter.last {
			return chapter.name
		}
	}
	panic("a code beyond the last chapter")
}

// generator draws everything from one seeded source.
type generator struct {
	*rand.Rand
	areas []area
}

type area struct {
	zip, city string
	weight    int
}

func newGenerator() *generator {
	g := &generator{Rand: rand.New(rand.NewPCG(20260101, 6432))}
	// Two hundred areas whose sizes fall like a power law.
	for i := range 200 {
		city := cities[i%len(cities)]
		zip := fmt.Sprintf("%05d", 10000+(i%len(cities))*7000+(i/len(cities))*37+i%10)
		g.areas = append(g.areas, area{zip: zip, city: city, weight: 20000 / (i + 4)})
	}
	return g
}

func (g *generator) cityRows() [][]any {
	rows := make([][]any, len(g.areas))
	for i, a := range g.areas {
		rows[i] = []any{a.zip, a.city}
	}
	return rows
}

func (g *generator) patient(id int) *patient {
	p := &patient{id: id, age: g.age(), sex: "female"}
	if g.IntN(100) < 48 {
		p.sex = "male"
	}
	if id == canaryID {
		p.age = CanaryAge
	}
	birthday := today.AddDate(-p.age, 0, -g.IntN(365)-1)
	p.birth = birthday
	p.name = fmt.Sprintf("%s %s", firstNames[g.IntN(len(firstNames))],
		lastNames[g.IntN(len(lastNames))])
	p.ssn = fmt.Sprintf("%03d-%02d-%04d", 1+g.IntN(898), 1+g.IntN(98), g.IntN(10000))
	p.zip = g.weightedArea()
	if r := g.IntN(100); r < 97 {
		race := races[weighted(g.Rand, raceWeights)]
		p.race = &race
	}
	condition := conditions[g.condition(p.age)]
	p.diagnosis, p.ward = condition.name, condition.ward
	p.cost = float64(int(100*(200+g.ExpFloat64()*2500))) / 100
	p.conditions = g.codes()
	if id == canaryID {
		p.name, p.ssn = CanaryName, CanarySSN
	}
	return p
}

// age draws from a population pyramid with a thin top: about one in two
// thousand is over a hundred.
func (g *generator) age() int {
	switch r := g.IntN(2000); {
	case r == 0:
		return 100 + g.IntN(9)
	case r < 400:
		return g.IntN(20)
	case r < 900:
		return 20 + g.IntN(25)
	case r < 1500:
		return 45 + g.IntN(25)
	default:
		return min(99, 68+int(g.ExpFloat64()*9))
	}
}

func (g *generator) weightedArea() string {
	total := 0
	for _, a := range g.areas {
		total += a.weight
	}
	r := g.IntN(total)
	for _, a := range g.areas {
		if r -= a.weight; r < 0 {
			return a.zip
		}
	}
	return g.areas[0].zip
}

// condition draws the main diagnosis; those of the old are for the old.
func (g *generator) condition(age int) int {
	for {
		i := weighted(g.Rand, conditionWeights)
		if age >= conditions[i].fromAge {
			return i
		}
	}
}

// codes draws up to eight ICD-9-CM codes of further conditions, which the main one, shown
// with the patient, says nothing of.
func (g *generator) codes() []string {
	var codes []string
	seen := make(map[string]bool)
	for range g.IntN(9) {
		if c := conditions[weighted(g.Rand, conditionWeights)].code; !seen[c] {
			seen[c] = true
			codes = append(codes, c)
		}
	}
	return codes
}

func (g *generator) visitRows(all []*patient) [][]any {
	var rows [][]any
	for _, p := range all {
		visits := int(g.ExpFloat64() * (1 + float64(len(p.conditions))/2))
		if p.id == frequentVisitor {
			visits = frequentVisitorVisits
		}
		for range min(visits, frequentVisitorVisits) {
			day := today.AddDate(0, 0, -1-g.IntN(2*365))
			rows = append(rows, []any{
				len(rows) + 1, p.id, day, g.visited(),
				float64(int(100*(40+g.ExpFloat64()*400))) / 100,
			})
		}
	}
	return rows
}

// visited draws the ward of a visit: one in three is an emergency, and the patient's own
// condition, shown with the patient, decides about none.
func (g *generator) visited() string {
	if g.IntN(3) == 0 {
		return "emergency"
	}
	return conditions[weighted(g.Rand, conditionWeights)].ward
}

// weighted draws an index with the given weights.
func weighted(r *rand.Rand, weights []int) int {
	total := 0
	for _, w := range weights {
		total += w
	}
	n := r.IntN(total)
	for i, w := range weights {
		if n -= w; n < 0 {
			return i
		}
	}
	return 0
}
