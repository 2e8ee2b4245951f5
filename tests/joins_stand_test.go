package tests

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// joinPrefix starts the names of the corpus' statements that join tables along
// the key of their subject.
const joinPrefix = "keyjoin-"

// clinicTables are patients with encounters, several a patient, and stays.
const clinicTables = `
CREATE TABLE patients (id int PRIMARY KEY, name text, birth_date date, age int, sex text, zip text,
	diagnosis text, cost int, "Odd Name" text);
CREATE TABLE encounters (id int PRIMARY KEY, patient_id int NOT NULL REFERENCES patients,
    day date, kind text, fee int, note text);
CREATE TABLE stays (id int NOT NULL REFERENCES patients, ward text);
CREATE TABLE zip_city (zip text PRIMARY KEY, city text);
CREATE VIEW seen AS SELECT p.age, e.day FROM patients p JOIN encounters e ON e.patient_id = p.id;
GRANT SELECT ON zip_city TO PUBLIC;`

// clinicPolicy protects them: patients and encounters have quasi-identifiers.
const clinicPolicy = `
CALL tailor.define_hierarchy('age', 'interval',
    '{"widths": [10, 20, 40], "lower": 0, "upper": 119}');
CALL tailor.define_hierarchy('zip', 'prefix', '{"keep": [4, 3, 2, 1]}');
CALL tailor.define_hierarchy('odd', 'prefix', '{"keep": [1]}');
CALL tailor.define_hierarchy('day', 'date',
    '{"levels": ["month", "year", "decade"], "lower": "1900-01-01", "upper": "2029-12-31"}');
CALL tailor.define_hierarchy('sex', 'table', '{"paths": [["female"], ["male"]]}');
CALL tailor.define_hierarchy('kind', 'table',
    '{"paths": [["ward", "in"], ["surgery", "in"], ["office", "out"], ["phone", "out"]]}');
CALL tailor.protect('public.patients', subject => 'id', k => %[1]d);
CALL tailor.classify('public.patients', 'id', 'direct_identifier');
CALL tailor.classify('public.patients', 'name', 'direct_identifier');
CALL tailor.classify('public.patients', 'birth_date', 'quasi_identifier', hierarchy => 'day');
CALL tailor.classify('public.patients', 'age', 'quasi_identifier', hierarchy => 'age');
CALL tailor.classify('public.patients', 'sex', 'quasi_identifier', hierarchy => 'sex');
CALL tailor.classify('public.patients', 'zip', 'quasi_identifier', hierarchy => 'zip');
CALL tailor.classify('public.patients', 'diagnosis', 'sensitive');
CALL tailor.classify('public.patients', 'cost', 'non_sensitive');
CALL tailor.classify('public.patients', 'Odd Name', 'quasi_identifier', hierarchy => 'odd');
CALL tailor.protect('public.encounters', subject => 'patient_id', k => %[2]d);
CALL tailor.classify('public.encounters', 'patient_id', 'direct_identifier');
CALL tailor.classify('public.encounters', 'day', 'quasi_identifier', hierarchy => 'day');
CALL tailor.classify('public.encounters', 'kind', 'quasi_identifier', hierarchy => 'kind');
CALL tailor.classify('public.encounters', 'fee', 'non_sensitive');
CALL tailor.classify('public.encounters', 'note', 'sensitive');
CALL tailor.protect('public.stays', subject => 'id', k => %[1]d);
CALL tailor.classify('public.stays', 'ward', 'non_sensitive');
CALL tailor.grant_reader('researcher');
CALL tailor.activate('public.patients');
CALL tailor.activate('public.encounters');
CALL tailor.activate('public.stays');`

// clinic is a protected database and a direct connection to it.
type clinic struct {
	*testProxy
	direct *pgx.Conn
}

// newClinic fills the tables by a script, protects them and serves them.
func newClinic(t *testing.T, name string, k, kOfEncounters int, fill string) *clinic {
	t.Helper()
	conn := makeDatabase(t, name, clinicTables+fill)
	if err := shared.install(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	mustExec(t, conn, fmt.Sprintf(clinicPolicy, k, kOfEncounters))
	c := &clinic{shared.serve(t, "--service-dsn", shared.cluster.ServiceDSN(name)), conn}
	c.database = name
	return c
}

// admit makes a reader of the clinic, with chains of his own.
func (c *clinic) admit(t *testing.T, name string) string {
	t.Helper()
	mustExec(t, c.direct, fmt.Sprintf(`CREATE ROLE %s LOGIN PASSWORD '%[1]s'`, name))
	mustExec(t, c.direct, `CALL tailor.grant_reader($1)`, name)
	return name
}

// joinCorpus reads the statements of one outcome that join along keys.
func joinCorpus(t *testing.T, outcome string) map[string]string {
	t.Helper()
	files, err := filepath.Glob("../planner/testdata/" + outcome + "/" + joinPrefix + "*.sql")
	if err != nil || len(files) == 0 {
		t.Fatalf("no corpus: %v", err)
	}
	texts := make(map[string]string)
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		texts[strings.TrimSuffix(strings.TrimPrefix(filepath.Base(f), joinPrefix), ".sql")] = string(text)
	}
	return texts
}

// crowd fills the tables with people drawn at random: most have some
// encounters, some many and some none. A note says which encounter it is of,
// and a diagnosis whose: an attacker's perfect knowledge of payloads.
const crowd = `
SELECT setseed(0.25);
INSERT INTO patients SELECT g, 'Canaria ' || g, date '1920-01-01' + (random() * 36000)::int,
    (random() * 90)::int,
	CASE WHEN random() < 0.5 THEN 'male' ELSE 'female' END, lpad((random() * 300)::int::text, 5,
	'35'), 'patient ' || g,
	(random() * 1000)::int, chr(97 + (random() * 4)::int) || (random() * 5)::int
FROM generate_series(1, 600) g;
INSERT INTO encounters SELECT row_number() OVER (), p.id, date '2019-01-01' + (random() * 700)::int,
	(ARRAY['ward', 'surgery', 'office', 'phone'])[1 + floor(random() * 4)::int],
	(random() * 100)::int, 'encounter ' || row_number() OVER ()
FROM patients p, generate_series(1, p.id * p.id % 7 + CASE WHEN p.id % 97 = 0 THEN 40 ELSE 0 END);
INSERT INTO stays SELECT id, 'ward ' || id % 5 FROM patients WHERE id % 3 > 0;
INSERT INTO zip_city SELECT DISTINCT zip, 'city ' || substr(zip, 1, 4) FROM patients;`

// twins fills the tables so that two people share each combination of
// quasi-identifiers, in patients as in encounters: with k = 2 there is nothing
// to generalize.
const twins = `
INSERT INTO patients SELECT g, 'Canaria', date '1930-01-15' + (g / 2 * 397), g / 2 * 7 % 97,
    (ARRAY['male', 'female'])[1 + g / 6 % 2],
	lpad((g / 2 % 30 * 101)::text, 5, '1'), (ARRAY['flu', 'measles', 'gout'])[1 + g * 5 % 7 % 3],
	10 + g * g % 211, chr(97 + g / 2 % 5)
FROM generate_series(0, 119) g;
INSERT INTO encounters SELECT g * 10 + n, g, date '2019-01-01' + (g / 2 * 13 + n * 31) % 400,
	(ARRAY['ward', 'surgery', 'office', 'phone'])[1 + (g / 2 + n) % 4], (g * 7 + n * 5) % 61,
	'note ' || (g + n) % 9
FROM generate_series(0, 119) g, generate_series(1, g / 2 % 5) n;
INSERT INTO stays SELECT g, 'ward ' || g % 4 FROM generate_series(0, 119) g WHERE g / 2 % 3 > 0;
INSERT INTO zip_city SELECT DISTINCT zip, 'city ' || substr(zip, 3) FROM patients WHERE id % 4 < 2;`
