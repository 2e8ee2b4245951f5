package tests

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// familyTables are patients and what else there is of them: visits and labs, several
// rows a patient and somebody with very many, deliveries, one row each of some, and
// codes. What one table shows as it is stands in no other. A token is of its table.
const familyTables = `
CREATE TABLE patients (id int PRIMARY KEY, name text, birth_date date, age int, sex text, zip text,
	diagnosis text, cost int, patient_token text);
CREATE TABLE visits (id int PRIMARY KEY, patient_id int NOT NULL REFERENCES patients, day date,
    kind text, reason text, visit_token text);
CREATE TABLE labs (patient_id int NOT NULL REFERENCES patients, taken date, analyte text,
    result int, lab_token text);
CREATE TABLE deliveries (patient_id int PRIMARY KEY REFERENCES patients, week int, weight int,
    delivery_token text);
CREATE TABLE diagnoses (patient_id int NOT NULL REFERENCES patients, code text,
    PRIMARY KEY (patient_id, code));
CREATE TABLE zip_city (zip text PRIMARY KEY, city text);
GRANT SELECT ON zip_city TO PUBLIC;
SELECT setseed(0.5);
INSERT INTO patients SELECT g, 'Canaria ' || g, date '1930-01-01' + (random() * 30000)::int,
    (random() * 90)::int,
	(ARRAY['female', 'male'])[1 + (random() < 0.5)::int], 10000 + (random() * random() * 300)::int,
	(ARRAY['asthma', 'flu', 'gout', 'heart failure', 'measles', 'stroke'])[1 +
	floor(random() * random() * 6)::int],
	(random() * 9000)::int, 'p' || g - 1
FROM generate_series(1, 1000) g;
INSERT INTO zip_city SELECT DISTINCT zip, 'city ' || right(zip, 1) FROM patients;
INSERT INTO visits SELECT row_number() OVER (), p.id, date '2024-01-01' + (random() * 700)::int,
	(ARRAY['office', 'phone', 'surgery', 'ward'])[1 + floor(random() * 4)::int],
	md5(random()::text), 'v' || row_number() OVER () - 1
FROM patients p, generate_series(1, p.id * p.id % 5 + CASE WHEN p.id % 211 = 0 THEN 60 ELSE 0 END);
INSERT INTO labs SELECT p.id, date '2025-01-01' + (random() * 300)::int, (ARRAY['CRP', 'HbA1c',
    'LDL', 'TSH'])[1 + floor(random() * 4)::int],
	(random() * 500)::int, 'l' || row_number() OVER () - 1
FROM patients p, generate_series(1, p.id * 7 % 4 + CASE WHEN p.id % 503 = 0 THEN 40 ELSE 0 END);
INSERT INTO deliveries SELECT id, 24 + (random() * 18)::int, 900 + (random() * 3900)::int,
    'd' || row_number() OVER () - 1
FROM patients WHERE sex = 'female' AND id % 2 = 0;
INSERT INTO diagnoses SELECT DISTINCT p.id, 'C' || floor(random() * random() * 40)::int
    FROM patients p, generate_series(1, 1 + p.id % 5);
ANALYZE;`

// familyPolicy protects them. Its parameters are the k of all tables but diagnoses,
// and what else is to be said before activation.
const familyPolicy = `
CALL tailor.define_hierarchy('age', 'interval',
    '{"widths": [5, 10, 20, 40], "lower": 0, "upper": 119}');
CALL tailor.define_hierarchy('zip', 'prefix', '{"keep": [4, 3, 2, 1]}');
CALL tailor.define_hierarchy('day', 'date',
    '{"levels": ["month", "year", "decade"], "lower": "1900-01-01", "upper": "2029-12-31"}');
CALL tailor.define_hierarchy('sex', 'table', '{"paths": [["female"], ["male"]]}');
CALL tailor.define_hierarchy('kind', 'table',
    '{"paths": [["ward", "in"], ["surgery", "in"], ["office", "out"], ["phone", "out"]]}');
CALL tailor.define_hierarchy('analyte', 'table',
    '{"paths": [["CRP"], ["HbA1c"], ["LDL"], ["TSH"]]}');
CALL tailor.define_hierarchy('weight', 'interval',
    '{"widths": [100, 500, 1000], "lower": 0, "upper": 9999}');
CALL tailor.protect('patients', subject => 'id', k => %[1]d);
CALL tailor.classify('patients', 'id', 'direct_identifier');
CALL tailor.classify('patients', 'name', 'direct_identifier');
CALL tailor.classify('patients', 'birth_date', 'quasi_identifier', hierarchy => 'day');
CALL tailor.classify('patients', 'age', 'quasi_identifier', hierarchy => 'age');
CALL tailor.classify('patients', 'sex', 'quasi_identifier', hierarchy => 'sex');
CALL tailor.classify('patients', 'zip', 'quasi_identifier', hierarchy => 'zip');
CALL tailor.classify('patients', 'diagnosis', 'sensitive');
CALL tailor.classify('patients', 'cost', 'non_sensitive');
CALL tailor.classify('patients', 'patient_token', 'non_sensitive');
CALL tailor.protect('visits', subject => 'patient_id', k => %[1]d);
CALL tailor.classify('visits', 'patient_id', 'direct_identifier');
CALL tailor.classify('visits', 'day', 'quasi_identifier', hierarchy => 'day');
CALL tailor.classify('visits', 'kind', 'quasi_identifier', hierarchy => 'kind');
CALL tailor.classify('visits', 'reason', 'sensitive');
CALL tailor.classify('visits', 'visit_token', 'non_sensitive');
CALL tailor.max_share('visits', 0.3);
CALL tailor.protect('labs', subject => 'patient_id', k => %[1]d);
CALL tailor.classify('labs', 'patient_id', 'direct_identifier');
CALL tailor.classify('labs', 'taken', 'quasi_identifier', hierarchy => 'day');
CALL tailor.classify('labs', 'analyte', 'quasi_identifier', hierarchy => 'analyte');
CALL tailor.classify('labs', 'result', 'sensitive');
CALL tailor.classify('labs', 'lab_token', 'non_sensitive');
CALL tailor.protect('deliveries', subject => 'patient_id', k => %[1]d);
CALL tailor.classify('deliveries', 'patient_id', 'direct_identifier');
CALL tailor.classify('deliveries', 'weight', 'quasi_identifier', hierarchy => 'weight');
CALL tailor.classify('deliveries', 'week', 'sensitive');
CALL tailor.classify('deliveries', 'delivery_token', 'non_sensitive');
CALL tailor.protect('diagnoses', subject => 'patient_id', k => 5);
CALL tailor.classify('diagnoses', 'patient_id', 'direct_identifier', action => 'pseudonym');
CALL tailor.set_valued('diagnoses', column_name => 'code', m => 2);
CALL tailor.grant_reader('researcher');
%[2]s;` + activateFamily

// activateFamily puts the drafts in force, the parent's first.
const activateFamily = `
CALL tailor.activate('patients');
CALL tailor.activate('visits');
CALL tailor.activate('labs');
CALL tailor.activate('deliveries');
CALL tailor.activate('diagnoses');`

// familyOf are the tables whose rows have tokens, and where to find their facts.
var familyOf = map[string]string{
	"patients":   `SELECT patient_token, id::text, diagnosis FROM patients`,
	"visits":     `SELECT visit_token, patient_id::text, reason FROM visits`,
	"labs":       `SELECT lab_token, patient_id::text, result::text FROM labs`,
	"deliveries": `SELECT delivery_token, patient_id::text, week::text FROM deliveries`,
}

// requireDiverse is a model of the parent.
const requireDiverse = `CALL tailor.require('patients', 'l_diversity', 'diagnosis', 3)`

// newFamily fills and protects a database.
func newFamily(t *testing.T, name string, k int, further string) *pgx.Conn {
	t.Helper()
	conn := makeDatabase(t, name, familyTables)
	if err := shared.install(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	// Conditions on middles take or leave whole blocks: whom an answer leaves out is told
	// apart as well. (On values that are drawn, it tells nothing of anybody.)
	mustExec(t, conn, asMiddles(fmt.Sprintf(familyPolicy, k, further)))
	return conn
}

// familySources are the tables, alone and joined along the key of their subject in
// every form that is understood.
func familySources() (out []source) {
	days := since(2023, 2026)
	ofPatients := []attribute{
		{"birth_date", since(1930, 2012)},
		{"age", within(0, 90)},
		{"sex", oneOf("female", "male")},
		{"zip", startsWith("12")},
	}
	patients := source{
		of: "patients", token: "patient_token", from: "patients",
		attributes: ofPatients,
	}
	cities := patients
	cities.from, cities.further = "patients JOIN zip_city USING (zip)", []string{"city"}
	out = append(out, patients, patients, cities)
	var lent []attribute
	for _, a := range ofPatients {
		lent = append(lent, attribute{"p." + a.name, a.condition})
	}
	for _, child := range []source{
		{of: "visits", token: "visit_token", attributes: []attribute{
			{"c.day", days}, {"c.kind", oneOf("ward", "office", "out")},
		}},
		{of: "labs", token: "lab_token", attributes: []attribute{
			{"c.taken", days}, {"c.analyte", oneOf("CRP", "LDL", "TSH")},
		}},
		{
			of: "deliveries", token: "delivery_token",
			attributes: []attribute{{"c.weight", within(900, 4800)}},
		},
	} {
		child.from = child.of + " c"
		out = append(out, child)
		child.attributes = slices.Concat(child.attributes, lent)
		for _, form := range []string{
			"patients p JOIN %s c ON p.id = c.patient_id",
			"%s c LEFT JOIN patients p ON c.patient_id = p.id",
			"%s AS c INNER JOIN patients AS p ON (c.patient_id = p.id AND p.age >= 0)",
		} {
			child.from = fmt.Sprintf(form, child.of)
			out = append(out, child)
		}
		child.from, child.further = child.of+" c JOIN patients p ON p.id = c.patient_id JOIN zip_city "+
			"z ON z.zip = p.zip", []string{"z.city"}
		out = append(out, child)
	}
	return out
}

// TestReadersOfAFamilyWhoPoolTheirAnswers has ten readers ask twenty random queries
// each of a family of tables, joined along the key, and pool all answers.
func TestReadersOfAFamilyWhoPoolTheirAnswers(t *testing.T) {
	direct := newFamily(t, "pooled_family", k, requireDiverse)
	p := serveDatabase(t, "pooled_family")
	conns := p.readers(t, direct, "family_reader", 10)
	sources, all := familySources(), make(map[string]*pooled)
	for table, facts := range familyOf {
		all[table] = newPooled(t, direct, facts)
	}
	shown := askInTurn(t, conns, queriesEach(), 2, sources, all)
	t.Logf("%d rows in the answers", shown)
	all["patients"].assertMeets(t, "patients", model{k: k, l: 3})
	all["visits"].assertMeets(t, "visits", model{k: k, share: 0.3})
	all["labs"].assertMeets(t, "labs", model{k: k, share: 0.5})
	all["deliveries"].assertMeets(t, "deliveries", model{k: k, share: 0.5})

	mustExec(t, conns[0], "SET tailor.representation = 'label'")
	once, most := make(map[string]*pooled), make(map[string]source)
	for _, s := range sources {
		if len(s.attributes) >= len(most[s.of].attributes) && len(s.further) == 0 {
			most[s.of] = s
		}
	}
	for table, s := range most {
		once[table] = all[table].again()
		once[table].answer(t, conns[0], s.everything())
		if all[table].classes > once[table].classes {
			t.Errorf("%s: the answers tell %d classes apart, one about everything %d", table,
				all[table].classes, once[table].classes)
		}
	}
	onePublication(t, direct, conns)
}

// onePublication asserts that the codes of a family are published once: every reader
// is shown the same rows, and whoever knows two codes of a subject finds at least k
// subjects that it may be.
func onePublication(t *testing.T, direct *pgx.Conn, conns []*pgx.Conn) {
	t.Helper()
	var first []string
	for reader, conn := range conns {
		rows := rowsOf(t, conn, "SELECT patient_id, code FROM diagnoses ORDER BY patient_id, code")
		if reader == 0 {
			first = rows
		} else if !slices.Equal(first, rows) {
			t.Errorf("reader %d is shown other codes than the first one: %s", reader,
				firstOther(rows, first))
		}
	}
	pairs := rowsOf(t, direct,
		`SELECT DISTINCT a.code || ',' || b.code FROM diagnoses a JOIN diagnoses b USING (patient_id) `+
			`WHERE a.code < b.code`)
	few := 0
	for _, pair := range pairs {
		if one[int](t, conns[0], `SELECT upper FROM tailor.case_count('diagnoses', $1)`,
			strings.Split(pair, ",")) < k {
			few++
		}
	}
	if few > 0 || len(pairs) < 100 {
		t.Errorf("for %d of %d pairs of codes fewer than %d subjects come into question", few,
			len(pairs), k)
	}
}
