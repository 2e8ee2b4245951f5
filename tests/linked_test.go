package tests

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/hiatus-tailor/tailor/internal/demodata"
)

// linked is a question of a cohort study over several tables of the demo's hospital.
type linkedQuestion struct {
	name, sql string
	tables    int
	// slack is by how much a figure of 100 and more may be off, as a share of it, beside five
	// times its root; smaller ones may be off by eight times that. All figures of a question
	// together may be off by half the share. 0 is for figures that are the tables' own.
	slack float64
	// asked of the owner of the tables first: a data set is named, declared, and answers.
	declared bool
}

const diabetic = "EXISTS (SELECT FROM diagnoses d WHERE d.patient_id = p.id AND d.code = '250.00')"

// linkedHospital are 40 of them.
var linkedHospital = []linkedQuestion{
	// Codes and demographics: the joint publication.
	{
		"diabetics by sex",
		"SELECT p.sex, count(*) FROM patients p WHERE " + diabetic + " GROUP BY 1",
		2,
		0.05,
		false,
	},
	{
		"diabetics by age and region",
		"SELECT p.age / 20, left(p.zip, 1), count(*) FROM patients p JOIN diagnoses d ON d.patient_id " +
			"= p.id WHERE d.code = '250.00' AND p.age < 80 GROUP BY 1, 2",
		2,
		0.3,
		false,
	},
	{
		"hypertension by age and sex",
		"SELECT p.age / 20, p.sex, count(DISTINCT p.id) FROM patients p JOIN diagnoses d ON " +
			"d.patient_id = p.id WHERE d.code = '401.9' AND p.age < 80 GROUP BY 1, 2",
		2,
		0.15,
		false,
	},
	{
		"two codes",
		"SELECT p.sex, count(*) FROM patients p WHERE " + diabetic +
			" AND EXISTS (SELECT FROM diagnoses e WHERE e.patient_id = p.id AND e.code = '401.9') " +
			"GROUP BY 1",
		3,
		0.25,
		false,
	},
	{
		"without any code",
		"SELECT sex, count(*) FROM patients p WHERE NOT EXISTS (SELECT FROM diagnoses d WHERE " +
			"d.patient_id = p.id) GROUP BY 1",
		2,
		0.25,
		false,
	},
	{
		"codes by chapter and sex",
		"SELECT i.chapter, p.sex, count(*) FROM patients p JOIN diagnoses d ON d.patient_id = p.id " +
			"JOIN icd9 i USING (code) GROUP BY 1, 2",
		3,
		0.1,
		false,
	},
	{
		"people of 65 and more by chapter",
		"SELECT i.chapter, count(DISTINCT p.id) FROM patients p JOIN diagnoses d ON d.patient_id = " +
			"p.id JOIN icd9 i USING (code) WHERE p.age >= 65 GROUP BY 1",
		3,
		0.2,
		false,
	},
	{
		"circulatory by region",
		"SELECT left(zip, 1), count(*) FROM patients WHERE id IN (SELECT patient_id FROM diagnoses " +
			"WHERE code IN (SELECT code FROM icd9 WHERE chapter LIKE '%circulatory%')) GROUP BY 1",
		3,
		0.15,
		false,
	},
	{
		"pairs of codes by age",
		"SELECT p.age / 40, a.code, b.code, count(*) FROM patients p JOIN diagnoses a ON a.patient_id " +
			"= p.id JOIN diagnoses b ON b.patient_id = p.id AND b.code > a.code WHERE p.age < 80 AND " +
			"a.code IN ('250.00', '272.4') AND b.code IN ('401.9', '493.90') GROUP BY 1, 2, 3",
		3,
		0.5,
		false,
	},
	{
		"diabetics by city",
		"SELECT z.city, count(*) FROM patients p JOIN zip_city z USING (zip) WHERE " + diabetic +
			" GROUP BY 1",
		3,
		0.3,
		false,
	},
	{
		"all codes of a list",
		"SELECT sex, count(*) FROM patients p JOIN (SELECT patient_id, array_agg(code) AS codes FROM " +
			"diagnoses GROUP BY 1) d ON d.patient_id = p.id WHERE codes @> ARRAY['250.00', '401.9'] " +
			"GROUP BY 1",
		2,
		0.25,
		false,
	},
	{
		"never with codes by age",
		"SELECT age / 40, count(*) FROM patients WHERE id NOT IN (SELECT patient_id FROM diagnoses) " +
			"GROUP BY 1",
		2,
		0.3,
		false,
	},
	{
		"number of codes",
		"SELECT p.sex, sum((SELECT count(*) FROM diagnoses d WHERE d.patient_id = p.id))::bigint FROM " +
			"patients p GROUP BY 1",
		2,
		0.05,
		false,
	},
	// Visits and demographics: the join along the key.
	{
		"visits, and people without any",
		"SELECT p.sex, v.ward IS NULL, count(*) FROM patients p LEFT JOIN visits v ON p.id = " +
			"v.patient_id GROUP BY 1, 2",
		2,
		0.05,
		false,
	},
	{
		"number of visits, of people without any too",
		"SELECT p.sex, count(v.patient_id) FROM patients p LEFT JOIN visits v ON p.id = v.patient_id " +
			"GROUP BY 1",
		1,
		0.05,
		false,
	},
	{
		"visits by ward and sex",
		"SELECT v.ward, p.sex, count(*) FROM visits v JOIN patients p ON p.id = v.patient_id GROUP " +
			"BY 1, 2",
		2,
		0.2,
		false,
	},
	{
		"visits by year and age",
		"SELECT extract(year FROM v.day)::int, p.age / 40, count(*) FROM patients p JOIN visits v ON " +
			"p.id = v.patient_id GROUP BY 1, 2",
		2,
		0.15,
		false,
	},
	{
		"visits by quarter",
		"SELECT date_trunc('quarter', v.day)::date::text, count(*) FROM patients p, visits v WHERE " +
			"p.id = v.patient_id AND p.age >= 40 GROUP BY 1",
		2,
		0.2,
		false,
	},
	{
		"cost of visits by sex",
		"SELECT p.sex, sum(v.cost)::bigint FROM visits v LEFT JOIN patients p ON p.id = v.patient_id " +
			"GROUP BY 1",
		2,
		0.05,
		false,
	},
	{
		"visits by city",
		"SELECT z.city, count(*) FROM visits v JOIN patients p ON p.id = v.patient_id JOIN zip_city z " +
			"USING (zip) GROUP BY 1",
		3,
		0.25,
		false,
	},
	{
		"visits of elderly women",
		"SELECT v.ward, count(*) FROM visits v WHERE v.patient_id IN (SELECT id FROM patients WHERE " +
			"sex = 'female' AND age >= 60) GROUP BY 1",
		2,
		0.3,
		false,
	},
	{
		"visits from regions",
		"SELECT v.ward, count(*) FROM visits v WHERE EXISTS (SELECT FROM patients p WHERE p.id = " +
			"v.patient_id AND p.zip LIKE '1%') GROUP BY 1",
		2,
		0.3,
		false,
	},
	{
		"visits of all others",
		"SELECT count(*) FROM visits WHERE patient_id NOT IN (SELECT p.id FROM patients p WHERE p.sex " +
			"= 'female')",
		2,
		0.05,
		false,
	},
	{
		"people in an emergency",
		"SELECT p.sex, count(DISTINCT v.patient_id) FROM patients p JOIN visits v ON v.patient_id = " +
			"p.id WHERE v.ward = 'emergency' GROUP BY 1",
		2, 0.05, false,
	},
	// What is computed of each patient: the data set, read beside the patients.
	{
		"readmitted by diagnosis",
		"SELECT p.diagnosis, count(*) FROM patients p JOIN readmissions r ON r.id = p.id WHERE " +
			"r.readmitted GROUP BY 1",
		2,
		0,
		false,
	},
	{
		"readmitted by age and sex",
		"SELECT age / 20, sex, count(*) FROM readmissions WHERE readmitted AND age < 80 GROUP BY 1, 2",
		1,
		0.15,
		false,
	},
	{
		"never visited by diagnosis",
		"SELECT diagnosis, count(*) FROM patients p WHERE NOT EXISTS (SELECT FROM visits v WHERE " +
			"v.patient_id = p.id) GROUP BY 1",
		2,
		0,
		false,
	},
	{
		"ever in an emergency by ward",
		"SELECT p.ward, count(*) FROM patients p WHERE p.id IN (SELECT patient_id FROM visits WHERE " +
			"ward = 'emergency') GROUP BY 1",
		2,
		0,
		false,
	},
	{
		"number of visits",
		"SELECT (SELECT count(*) FROM visits v WHERE v.patient_id = p.id) AS visits, count(*) FROM " +
			"patients p GROUP BY 1",
		2,
		0,
		false,
	},
	{
		"five visits or more by sex",
		"SELECT sex, count(*) FROM patients WHERE id IN (SELECT patient_id FROM visits GROUP BY " +
			"patient_id HAVING count(*) >= 5) GROUP BY 1",
		2,
		0.05,
		false,
	},
	{
		"cost by number of visits",
		"WITH v AS (SELECT patient_id, count(*) AS n FROM visits GROUP BY patient_id) SELECT least(n, " +
			"6), sum(p.cost)::bigint FROM patients p JOIN v ON v.patient_id = p.id GROUP BY 1",
		2,
		0,
		false,
	},
	{
		"never readmitted by ward",
		"SELECT p.ward, count(*) FROM patients p LEFT JOIN readmissions r ON r.id = p.id AND " +
			"r.readmitted WHERE r.id IS NULL GROUP BY 1",
		2,
		0,
		false,
	},
	{
		"days to readmission",
		"SELECT diagnosis, sum(days_to_readmission)::bigint FROM patients JOIN readmissions USING (id) " +
			"WHERE readmitted GROUP BY 1",
		2,
		0,
		false,
	},
	{
		"readmitted by city",
		"SELECT z.city, count(*) FROM patients p JOIN readmissions r USING (id) JOIN zip_city z ON " +
			"z.zip = p.zip WHERE r.readmitted GROUP BY 1",
		3,
		0.25,
		false,
	},
	{
		"readmitted, never in an emergency",
		"SELECT p.diagnosis, count(*) FROM patients p JOIN readmissions r USING (id) WHERE " +
			"r.readmitted AND NOT EXISTS (SELECT FROM visits v WHERE v.patient_id = p.id AND v.ward = " +
			"'emergency') GROUP BY 1",
		3,
		0,
		false,
	},
	{
		"wards of people with one diagnosis",
		"WITH ill AS (SELECT id FROM patients WHERE diagnosis = 'asthma') SELECT wards, count(*) FROM " +
			"readmissions WHERE id IN (SELECT id FROM ill) GROUP BY 1",
		2,
		0,
		false,
	},
	{
		"visits of a year by diagnosis",
		"SELECT p.diagnosis, sum((SELECT count(*) FROM visits v WHERE v.patient_id = p.id AND v.day >= " +
			"'2025-01-01'))::bigint FROM patients p JOIN readmissions r USING (id) GROUP BY 1",
		3,
		0,
		false,
	},
	// What no release tells: a data set has to be declared.
	{
		"diabetics in an emergency",
		"SELECT p.diagnosis, count(*) FROM patients p WHERE EXISTS (SELECT FROM visits v WHERE " +
			"v.patient_id = p.id AND v.ward = 'emergency') AND " + diabetic + " GROUP BY 1",
		3,
		0,
		true,
	},
	{
		"diabetics in surgery",
		"SELECT count(*) FROM patients p WHERE (SELECT count(*) FROM visits v WHERE v.patient_id = " +
			"p.id AND v.ward = 'surgery') > 0 AND " + diabetic,
		3,
		0,
		true,
	},
	{
		"cost by number of conditions",
		"SELECT (SELECT count(*) FROM diagnoses d WHERE d.patient_id = p.id) AS conditions, " +
			"sum(p.cost)::bigint FROM patients p GROUP BY 1",
		2,
		0,
		true,
	},
	{
		"emergencies before others",
		"SELECT diagnosis, count(*) FROM patients p WHERE (SELECT min(v.day) FROM visits v WHERE " +
			"v.patient_id = p.id AND v.ward = 'emergency') < (SELECT min(v.day) FROM visits v WHERE " +
			"v.patient_id = p.id AND v.ward <> 'emergency') GROUP BY 1",
		3,
		0,
		true,
	},
}

// jointCost is what policy plan says of a joint publication.
var jointCost = regexp.MustCompile(
	`published with sex, age, zip of public.patients, in groups of 200: ` +
		`how many of 6000 subjects have two codes is off by ([0-9.]+) %, by ([0-9.]+) % without`,
)

// TestFortyLinkedQuestions asks them of the demo's policy, and of the tables.
func TestFortyLinkedQuestions(t *testing.T) {
	direct, p := studyHospital(t, "linked_hospital", 6000)
	conn := connect(t, p.program("researcher"))
	for _, table := range []string{"patients", "visits", "diagnoses", "readmissions"} {
		answeredSoon(t, conn, "SELECT count(*) FROM "+table)
	}
	asked, three, answers := 0, 0, 0
	for _, q := range linkedHospital {
		asked++
		if q.tables >= 3 {
			three++
		}
		_, err := conn.Exec(t.Context(), q.sql)
		if err == nil {
			answers++
		}
		if refused := err != nil; refused != q.declared {
			t.Errorf("%s: %v", q.name, errorText(err))
			continue
		}
		for err != nil {
			script := hintedDataSet(err)
			if script == "" {
				t.Errorf("%s: %v: no data set is named", q.name, errorText(err))
				break
			}
			// That codes become known to whoever knows no codes is the owner's decision.
			mustExec(t, direct, strings.Replace(script, "CALL tailor.activate",
				acceptedAll(script)+"CALL tailor.activate", 1))
			answeredAfter(t, conn, q.sql, err)
			_, err = conn.Exec(t.Context(), q.sql)
		}
		if err != nil {
			continue
		}
		truth, shown := numbersBy(t, direct, q.sql), numbersBy(t, conn, q.sql)
		worst, at := 0.0, ""
		missed, all := 0.0, 0.0
		for key, n := range truth {
			missed, all = missed+math.Abs(shown[key]-n), all+n
			slack := 0.0
			if q.slack > 0 {
				slack = max(q.slack*n, 5*math.Sqrt(n)+3)
				if n < 100 {
					slack = 8*math.Sqrt(n) + 3
				}
			}
			if off := math.Abs(shown[key]-n) - slack; off > 0 {
				t.Errorf("%s, %s: %g, in truth %g", q.name, key, shown[key], n)
			}
			if off := math.Abs(shown[key]-n) / max(n, 1); off > worst && n >= 100 {
				worst, at = off, key
			}
		}
		for key, n := range shown {
			if truth[key] == 0 && (q.slack == 0 || n > 10) {
				t.Errorf("%s, %s: %g, in truth none", q.name, key, n)
			}
		}
		if missed > max(q.slack/2, 0.01)*all+20 {
			t.Errorf("%s: off by %.1f %% together", q.name, 100*missed/all)
		}
		t.Logf("%-34s off by %4.1f %% together, by %4.1f %% at most %s", q.name,
			100*missed/max(all, 1), 100*worst, at)
	}
	if asked < 40 || three < 12 || answers < 36 {
		t.Errorf("%d questions, %d over three tables, %d answered at once", asked, three, answers)
	}
	plan := filepath.Join(t.TempDir(), "policy.yaml")
	dsn := shared.cluster.SuperuserDSN("linked_hospital")
	if _, stderr, code := tailor(t, "policy", "export", "--dsn", dsn, plan); code != 0 {
		t.Fatal(stderr)
	}
	said, stderr, _ := tailor(t, "policy", "plan", "--dsn", dsn, plan)
	if m := jointCost.FindStringSubmatch(said); m == nil || figure(m[1]) < figure(m[2]) {
		t.Errorf("the plan does not say what the joint publication costs the codes:\n%s%s", said, stderr)
	} else {
		t.Log(m[0])
	}
	text, err := os.ReadFile(plan)
	if err != nil {
		t.Fatal(err)
	}
	none := strings.Replace(string(text), "[sex, age, zip]", "[sex, diagnosis]", 1)
	if err := os.WriteFile(plan, []byte(none), 0o600); err != nil || none == string(text) {
		t.Fatal(err, string(text))
	}
	said, stderr, code := tailor(t, "policy", "plan", "--dsn", dsn, plan)
	if want := "diagnosis is no quasi-identifier of public.patients"; code == 0 ||
		!strings.Contains(said, want) {
		t.Errorf("exit %d, and the plan does not say %q:\n%s%s", code, want, said, stderr)
	}
	// How many have all of some codes comes with bounds that hold for certain.
	for _, codes := range []string{"'250.00'", "'250.00', '401.9'"} {
		row := answered(t, conn, fmt.Sprintf("SELECT lower, upper FROM "+
			"tailor.case_count('public.diagnoses', ARRAY[%s])", codes))[0]
		n := answered(t, direct, fmt.Sprintf("SELECT count(*) FROM (SELECT FROM diagnoses GROUP BY "+
			"patient_id HAVING array_agg(code) @> ARRAY[%s]) q", codes))[0][0].(int64)
		if row[0].(int64) > n || row[1].(int64) < n {
			t.Errorf("%s: %v, in truth %d", codes, row, n)
		}
	}
}

// studyHospital is the demo's hospital with all of its policy, after some changes of its rows.
func studyHospital(
	t *testing.T,
	name string,
	people int,
	changes ...string,
) (direct *pgx.Conn, p *testProxy) {
	t.Helper()
	direct = makeDatabase(t, name, demodata.Schema)
	if err := demodata.Fill(t.Context(), direct, people); err != nil {
		t.Fatal(err)
	}
	if err := shared.install(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	mustExec(t, direct, strings.Join(changes, ";"))
	mustExec(t, direct, demodata.Policy+demodata.Study+"GRANT SELECT ON zip_city, icd9 TO PUBLIC")
	return direct, serveDatabase(t, name)
}
