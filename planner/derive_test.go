package planner_test

import (
	"strings"
	"testing"

	"github.com/hiatus-tailor/tailor/catalog"
	"github.com/hiatus-tailor/tailor/planner"
)

func number(name string, n int) catalog.Column {
	return catalog.Column{Name: name, Number: n, Type: "bigint", Class: catalog.NonSensitive}
}

// familySnapshot has patients, their encounters, and a data set of what is computed of these.
func familySnapshot() *catalog.Snapshot {
	age := catalog.Column{
		Name:      "age",
		Number:    2,
		Type:      "integer",
		Category:  "N",
		Class:     catalog.QuasiIdentifier,
		Hierarchy: &catalog.HierarchySpec{Name: "i", Kind: "interval"},
	}
	patients := &catalog.Relation{
		OID:     1,
		Schema:  "public",
		Name:    "patients",
		Subject: "id",
		K:       5,
		OneRow:  true,
		Columns: []catalog.Column{
			{Name: "id", Number: 1, Type: "integer", Class: catalog.DirectIdentifier},
			age,
			{
				Name:   "born",
				Number: 3,
				Type:   "date",
			},
			{Name: "diagnosis", Number: 4, Type: "text", Class: catalog.Sensitive},
		},
	}
	encounters := &catalog.Relation{
		OID:        2,
		Schema:     "public",
		Name:       "encounters",
		Subject:    "patient",
		K:          5,
		References: []uint32{1},
		Columns: []catalog.Column{
			{Name: "patient", Number: 1, Type: "integer", Class: catalog.DirectIdentifier},
			{
				Name:   "day",
				Number: 2,
				Type:   "date",
			},
			{Name: "ward", Number: 3, Type: "text", Class: catalog.Sensitive},
			{Name: "seen", Number: 4, Type: "timestamp with time zone", Class: catalog.Sensitive},
		},
	}
	encounters.Borrow(
		&catalog.Parent{
			Schema:  "public",
			Name:    "patients",
			Subject: "id",
			InStep:  true,
			Columns: []catalog.Column{age},
		},
		5,
	)
	history := &catalog.Relation{
		OID:       3,
		Schema:    "public",
		Name:      "history",
		Subject:   "id",
		K:         5,
		OneRow:    true,
		DataSetOf: 1,
		Query: `
		SELECT p.id, p.age, (SELECT count(*) FROM encounters e WHERE e.patient = p.id) AS n,
			EXISTS (SELECT FROM encounters WHERE patient = p.id AND ward = 'surgery' AND day >= born)
			AS operated,
			(SELECT min(e.day) FROM encounters e WHERE e.patient = id AND e.ward <> 'surgery') AS first,
			EXISTS (SELECT FROM encounters e WHERE e.patient = p.id AND e.ward = 'hidden') AS hidden,
			(SELECT count(*) FROM encounters e WHERE e.patient = p.id AND e.day >= '2020-03-01') AS late,
			(SELECT count(*) FROM encounters e WHERE e.patient = p.id AND e.ward = 'x'
			HAVING count(*) > 1) AS many,
			(SELECT count(*) FROM encounters e WHERE e.patient = p.id AND e.day = 'today') AS now,
			(SELECT count(*) FROM encounters e WHERE e.patient = p.id AND e.day > '03/04/2020') AS other,
			(SELECT count(*) FROM encounters e WHERE e.patient = p.id AND e.ward::date > '2020-03-04')
			AS cast,
			(SELECT count(*) FROM encounters e WHERE e.patient = p.id AND e.day > pg_backend_pid()) AS pid,
			(SELECT count(*) FROM encounters e WHERE e.patient = p.id
			AND to_char(e.day, 'YYYY') = '2020') AS char,
			(SELECT count(*) FROM encounters e WHERE e.patient = p.id AND e.seen > '2020-03-04') AS seen,
			(SELECT count(*) FROM (SELECT * FROM encounters e WHERE e.patient = p.id) q WHERE ward = 'y')
			AS inner,
			(SELECT count(*) FROM (SELECT ward, upper(ward) AS w FROM encounters e
			WHERE e.patient = p.id) q WHERE w = 'Y' AND ward = 'y') AS upper
		FROM patients p`,
		Columns: []catalog.Column{
			{Name: "id", Number: 1, Type: "integer", Class: catalog.DirectIdentifier},
			age,
			{
				Name:   "n",
				Number: 3,
				Type:   "bigint",
				Class:  catalog.NonSensitive,
			},
			{Name: "operated", Number: 4, Type: "boolean", Class: catalog.Sensitive},
			{
				Name:   "first",
				Number: 5,
				Type:   "date",
				Class:  catalog.Sensitive,
			},
			{Name: "hidden", Number: 6, Type: "boolean"},
			number("late", 7), number("many", 8), number("now", 9), number("other", 10),
			number("cast", 11), number("pid", 12), number("char", 13), number("seen", 14),
			number("inner", 15), number("upper", 16),
		},
	}
	return catalog.NewSnapshot(1, []*catalog.Relation{patients, encounters, history}, nil)
}

func TestSubqueriesAreReadFromColumnsThatSayTheSame(t *testing.T) {
	snapshot := familySnapshot()
	session := planner.Session{Database: "hospital", SearchPath: []string{"pg_catalog", "public"}}
	for _, c := range []struct{ of, column string }{ // "" for none
		{"EXISTS (SELECT FROM encounters e WHERE e.patient = p.id)", `"n" > 0`},
		{"NOT EXISTS (SELECT 1 FROM public.encounters WHERE p.id = patient)", `"n" > 0`},
		{"EXISTS (SELECT * FROM encounters e WHERE (e.patient = id))", `"n" > 0`},
		{"p.id IN (SELECT patient FROM encounters)", `"n" > 0`},
		{
			"id NOT IN (SELECT e.patient FROM encounters e)",
			`(CASE WHEN "p"."id" IS NOT NULL THEN NOT (SELECT tailor_own_set."n" > 0`,
		},
		{"p.id = ANY (SELECT patient FROM encounters)", `"n" > 0`},
		{
			"p.id IN (SELECT patient FROM encounters GROUP BY patient HAVING count(*) >= 3)",
			`"n" > 0 AND tailor_own_set."n" >= 3`,
		},
		{"(SELECT count(*) FROM encounters e WHERE e.patient = p.id) > 2", `tailor_own_set."n"`},
		{"EXISTS (SELECT FROM encounters e WHERE p.born <= e.day AND e.patient = p.id AND e.ward = " +
			"'surgery')", `"operated"`},
		{"p.id IN (SELECT patient FROM encounters WHERE day >= born AND ward = 'surgery')", `"operated"`},
		{
			"(SELECT min(day) FROM encounters WHERE ward <> 'surgery' AND p.id = patient) IS NULL",
			`"first"`,
		},
		{
			"p.id IN (SELECT DISTINCT patient FROM encounters)",
			`CASE WHEN "p"."id" IS NOT NULL THEN (SELECT tailor_own_set."n" > 0`,
		},
		{"EXISTS (SELECT FROM encounters e WHERE e.patient = p.id AND e.ward = 'now and then')", ""},
		{
			"(SELECT count(*) FROM encounters WHERE patient = p.id AND day >= '2020-03-01')",
			`(SELECT tailor_own_set."late"`,
		},
		// A day is written in many ways.
		{
			"(SELECT count(*) FROM encounters WHERE patient = p.id AND day > '2020-02-29')",
			`(SELECT tailor_own_set."late"`,
		},
		{
			"(SELECT count(*) FROM encounters WHERE patient = p.id AND date '2020-02-29' < day)",
			`(SELECT tailor_own_set."late"`,
		},
		{
			"(SELECT count(*) FROM encounters WHERE patient = p.id AND day >= '2020-03-01'::date)",
			`(SELECT tailor_own_set."late"`,
		},
		{"(SELECT count(*) FROM encounters WHERE patient = p.id AND day > '2020-03-01')", ""},
		{"(SELECT count(*) FROM encounters WHERE patient = p.id AND day <= '2020-03-01')", ""},
		{
			"(SELECT count(*) FROM encounters WHERE patient = p.id AND ward = 'x' HAVING count(*) > 1)",
			`OPERATOR(pg_catalog.=) "p"."id") END)`,
		},
		// They say something else, or what the policy hides, or cannot be compared.
		{"EXISTS (SELECT FROM encounters e WHERE e.patient = p.id AND e.ward = 'hidden')", ""},
		{"EXISTS (SELECT FROM encounters e WHERE e.patient = p.id AND e.ward = 'Surgery' AND e.day >= " +
			"p.born)", ""},
		{"EXISTS (SELECT FROM encounters e WHERE e.patient = p.id OR e.ward = 'x')", ""},
		{"EXISTS (SELECT FROM encounters e WHERE e.patient <> p.id)", ""},
		{"EXISTS (SELECT FROM encounters p WHERE p.patient = p.id)", ""},
		{"EXISTS (SELECT FROM encounters e WHERE e.patient = p.id LIMIT 0)", ""},
		{"EXISTS (SELECT count(*) FROM encounters e WHERE e.patient = p.id)", ""},
		{
			"EXISTS (SELECT FROM encounters e WHERE e.patient = p.id GROUP BY e.ward HAVING count(*) > 3)",
			"",
		},
		{"EXISTS (SELECT FROM encounters e, encounters f WHERE e.patient = p.id)", ""},
		{"(SELECT count(ward) FROM encounters e WHERE e.patient = p.id) > 2", ""},
		{
			"(SELECT count(*) FILTER (WHERE e.ward = 'x') FROM encounters e WHERE e.patient = p.id) > 2",
			"",
		},
		{"(SELECT max(day) FROM encounters WHERE ward <> 'surgery' AND p.id = patient) IS NULL", ""},
		{"p.id <> ANY (SELECT patient FROM encounters)", ""},
		{"p.id = ALL (SELECT patient FROM encounters)", ""},
		{"p.age IN (SELECT patient FROM encounters)", ""},
		{"p.id IN (SELECT patient FROM encounters LIMIT 1)", ""},
		{"p.id IN (SELECT DISTINCT ON (ward) patient FROM encounters)", ""},
		{"(p.id) IN (SELECT patient FROM encounters)", ""},
		{"(SELECT count(*) FROM encounters e WHERE e.patient = p.id AND e.day = 'today')", ""},
		{"(SELECT count(*) FROM encounters e WHERE e.patient = p.id AND e.day > '03/04/2020')", ""},
		{
			"(SELECT count(*) FROM encounters e WHERE e.patient = p.id AND e.ward::date > '2020-03-04')",
			"",
		},
		{"(SELECT count(*) FROM encounters e WHERE e.patient = p.id AND e.day > pg_backend_pid())", ""},
		{
			"(SELECT count(*) FROM encounters e WHERE e.patient = p.id AND to_char(e.day, 'YYYY') = '2020')",
			"",
		},
		{"(SELECT count(*) FROM encounters e WHERE e.patient = p.id AND e.seen > '2020-03-04')", ""},
		{
			"(SELECT count(*) FROM (SELECT * FROM encounters e WHERE e.patient = p.id) q WHERE ward = 'y')",
			"",
		},
		{"(SELECT count(*) FROM (SELECT ward, upper(ward) AS w FROM encounters e WHERE e.patient = " +
			"p.id) q WHERE ward = 'y' AND w = 'Y')", `"upper"`},
		{"p.id IN (SELECT patient FROM encounters GROUP BY patient, ward HAVING count(*) >= 3)", ""},
		{"p.id IN (SELECT patient FROM encounters GROUP BY patient HAVING max(day) > '2025-01-01')", ""},
		{"EXISTS (SELECT FROM encounters e WHERE e.patient = $1)", ""},
		{"EXISTS (SELECT FROM generate_series(1, 2) AS g (id) WHERE EXISTS (SELECT FROM encounters " +
			"WHERE patient = id))", ""},
		{"EXISTS (SELECT FROM (SELECT 1 AS id) p WHERE EXISTS (SELECT FROM encounters e WHERE " +
			"e.patient = p.id))", ""},
		{"EXISTS (SELECT FROM (SELECT 1 AS n) q WHERE EXISTS (SELECT FROM encounters e WHERE e.patient " +
			"= p.id))", `"n" > 0`},
		{"EXISTS (SELECT FROM (SELECT 1 AS n) p WHERE EXISTS (SELECT FROM encounters e WHERE " +
			"e.patient = id))", ""},
		{"EXISTS (WITH encounters AS (SELECT 1 AS patient) SELECT FROM encounters e WHERE e.patient " +
			"= p.id)", ""},
	} {
		plan, err := planner.Make("SELECT count(*) FROM patients p WHERE "+c.of, session, snapshot)
		switch {
		case err != nil && c.column != "":
			t.Errorf("%s: %v", c.of, err)
		case err == nil:
			text := plan.Rewrite(release).SQL
			if c.column == "" && strings.Contains(text, "tailor_own_set") ||
				!strings.Contains(text, c.column) {
				t.Errorf("%s is read as\n%s", c.of, text)
			}
		}
	}
}

// TestOuterJoinsKeepSubjectsWithoutRows where a data set has the number of rows.
func TestOuterJoinsKeepSubjectsWithoutRows(t *testing.T) {
	snapshot := familySnapshot()
	session := planner.Session{Database: "hospital", SearchPath: []string{"pg_catalog", "public"}}
	for join, answered := range map[string]bool{
		"patients p LEFT JOIN encounters e ON e.patient = p.id":                           true,
		"encounters e RIGHT JOIN patients p ON p.id = e.patient":                          true,
		"patients p LEFT JOIN encounters e ON e.patient = p.id WHERE e.patient IS NULL":   true,
		"patients p LEFT JOIN encounters e ON e.patient = p.id WHERE patient IS NOT NULL": true,
		"patients p LEFT JOIN encounters e ON e.patient = p.id AND e.ward = 'x'":          false,
		"patients p LEFT JOIN encounters e ON e.patient = p.id OR p.age > 3":              false,
		"patients p FULL JOIN encounters e ON e.patient = p.id":                           false,
		"patients p LEFT JOIN encounters e ON e.patient > p.id":                           false,
		"patients p LEFT JOIN encounters e ON true":                                       false,
		"(VALUES (1)) AS x (n) LEFT JOIN (patients p LEFT JOIN encounters e ON e.patient = p.id) " +
			"ON true": false,
		"patients p LEFT JOIN encounters e ON e.patient = p.id LEFT JOIN encounters f ON " +
			"f.patient = p.id": false,
	} {
		plan, err := planner.Make(
			"SELECT p.age, e.ward, count(*) FROM "+join+" GROUP BY 1, 2",
			session,
			snapshot,
		)
		if (err == nil) != answered {
			t.Errorf("%s: %v", join, err)
		}
		if err != nil {
			continue
		}
		text := plan.Rewrite(release).SQL
		for _, part := range []string{
			"chain_2_parent", "UNION ALL SELECT", "chain_1_family",
			"chain_3_family", `"n" = 0`,
		} {
			if !strings.Contains(text, part) {
				t.Errorf("%s: no %s in\n%s", join, part, text)
			}
		}
	}
	for _, sql := range []string{
		"SELECT p.diagnosis FROM patients p LEFT JOIN encounters e ON e.patient = p.id",
		"SELECT p.id FROM patients p LEFT JOIN encounters e ON e.patient = p.id",
		"SELECT count(DISTINCT p.id) FROM patients p LEFT JOIN encounters e ON e.patient = p.id",
		"SELECT count(*) FROM patients p JOIN encounters e ON e.patient = p.id WHERE e.patient IS NULL",
		"SELECT count(*) FROM patients p LEFT JOIN encounters e ON e.patient = p.id WHERE e.patient > 7",
	} {
		if _, err := planner.Make(sql, session, snapshot); err == nil {
			t.Errorf("%s is answered", sql)
		}
	}
}

// TestDifferentKeysAreCountedAsSubjects: who has a row of a child is told by a data set.
func TestDifferentKeysAreCountedAsSubjects(t *testing.T) {
	snapshot := familySnapshot()
	session := planner.Session{Database: "hospital", SearchPath: []string{"pg_catalog", "public"}}
	for sql, column := range map[string]string{ // "" for none
		"SELECT count(DISTINCT p.id) FROM patients p JOIN encounters e ON e.patient = p.id WHERE " +
			"p.age > 60": `"n" > 0`,
		"SELECT p.age / 20, count(DISTINCT e.patient) AS people FROM patients p, encounters e WHERE " +
			"e.patient = p.id GROUP BY 1 ORDER BY 2": `"n" > 0`,
		"SELECT count(DISTINCT p.id) FROM encounters e JOIN patients p ON p.id = e.patient AND ward = " +
			"'surgery' WHERE day >= born": `"operated"`,
		"SELECT p.age, count(DISTINCT p.id) FROM encounters e JOIN patients p ON p.id = e.patient " +
			"GROUP BY p.age HAVING count(DISTINCT p.id) > 9": `"n" > 0`,
		"SELECT count(DISTINCT p.id), avg(e.day - p.born) FROM patients p JOIN encounters e ON " +
			"e.patient = p.id WHERE p.age > 60": "",
		"SELECT ward, count(DISTINCT p.id) FROM patients p JOIN encounters e ON e.patient = p.id GROUP " +
			"BY ward": "",
		"SELECT count(DISTINCT p.id), count(*) FROM patients p JOIN encounters e ON e.patient = p.id " +
			"WHERE p.age > 60": "",
		"SELECT count(DISTINCT p.id) FROM patients p LEFT JOIN encounters e ON e.patient = p.id WHERE " +
			"p.age > 60": "",
		"SELECT count(DISTINCT p.id) FROM patients p JOIN encounters e ON e.patient > p.id WHERE " +
			"p.age > 60": "",
		"SELECT count(DISTINCT p.id) FILTER (WHERE e.ward = 'x') FROM patients p JOIN encounters e ON " +
			"e.patient = p.id": "",
		"SELECT count(DISTINCT e.patient) FROM encounters e WHERE e.ward = 'elsewhere'": "",
		"SELECT count(DISTINCT p.id) FROM patients p JOIN encounters e ON e.patient = p.id WHERE " +
			"random() < 0.5": "",
		"SELECT count(DISTINCT p.id) FROM patients p JOIN encounters e ON e.patient = p.id WHERE " +
			"p.age > 100 * random()": "",
	} {
		plan, err := planner.Make(sql, session, snapshot)
		switch {
		case err != nil && column != "":
			t.Errorf("%s: %v", sql, err)
		case err == nil:
			text := plan.Rewrite(release).SQL
			if column == "" || !strings.Contains(text, column) ||
				strings.Contains(text, "DISTINCT") {
				t.Errorf("%s is read as\n%s", sql, text)
			}
		}
	}
}

// TestGroupsBySubjectAreReadFromDataSets: a row for each subject is one of a data set.
func TestGroupsBySubjectAreReadFromDataSets(t *testing.T) {
	snapshot := familySnapshot()
	session := planner.Session{Database: "hospital", SearchPath: []string{"pg_catalog", "public"}}
	for sql, column := range map[string]string{ // "" for none
		"SELECT n, count(*) FROM (SELECT patient, count(*) AS n FROM encounters GROUP BY patient) x " +
			"GROUP BY n": `"n"`,
		"WITH v AS (SELECT patient, count(*) FROM encounters GROUP BY 1) SELECT diagnosis, avg(count) " +
			"FROM patients JOIN v ON patient = id GROUP BY 1": `"n"`,
		"SELECT diagnosis, count(*) FROM patients p JOIN (SELECT e.patient FROM encounters e GROUP BY " +
			"e.patient HAVING count(e.patient) > 3) v ON v.patient = p.id GROUP BY 1": `"n"`,
		"SELECT count(*) FROM (SELECT patient, min(day) AS day FROM encounters WHERE ward <> 'surgery' " +
			"GROUP BY patient HAVING min(day) > '2025-01-01') x": "",
		"SELECT n, count(*) FROM (SELECT patient, max(day) AS n FROM encounters GROUP BY patient) x " +
			"GROUP BY n": "",
		"SELECT n, count(*) FROM (SELECT patient, ward, count(*) AS n FROM encounters GROUP BY " +
			"patient, ward) x GROUP BY n": "",
		"WITH encounters AS (SELECT 1 AS patient) SELECT n FROM (SELECT patient, count(*) AS n FROM " +
			"encounters GROUP BY patient) x, patients": "",
		"SELECT patient, ward FROM encounters GROUP BY patient":             "",
		"SELECT patient, count(*) OVER () FROM encounters GROUP BY patient": "",
		"SELECT ward, count(*) FROM (SELECT patient, ward, row_number() OVER (PARTITION BY patient " +
			"ORDER BY day) AS n FROM encounters) x WHERE n = 1 GROUP BY 1": "",
	} {
		plan, err := planner.Make(sql, session, snapshot)
		switch {
		case err != nil && column != "":
			t.Errorf("%s: %v", sql, err)
		case err == nil:
			text := plan.Rewrite(release).SQL
			if column == "" && strings.Contains(text, "tailor_own_set") || !strings.Contains(text, column) {
				t.Errorf("%s is read as\n%s", sql, text)
			}
		}
	}
}

// TestSemiJoinsWithTheParentSelectEachRow: what keeps some of the parent's rows would keep
// others of those that stand for them.
func TestSemiJoinsWithTheParentSelectEachRow(t *testing.T) {
	session := planner.Session{Database: "hospital", SearchPath: []string{"pg_catalog", "public"}}
	for of, answered := range map[string]bool{
		"patient IN (SELECT id FROM patients WHERE age > 60)":                                      true,
		"patient IN (SELECT DISTINCT id FROM patients WHERE age > 60)":                             true,
		"EXISTS (SELECT FROM patients p WHERE p.id = e.patient AND age > 60 LIMIT 1)":              true,
		"patient IN (SELECT id FROM patients LIMIT 1)":                                             false,
		"patient IN (SELECT id FROM patients OFFSET 1)":                                            false,
		"patient IN (SELECT DISTINCT ON (age) id FROM patients)":                                   false,
		"patient IN (SELECT id FROM patients HAVING true)":                                         false,
		"patient IN (SELECT id FROM patients WINDOW w AS (ORDER BY age))":                          false,
		"patient IN (WITH patients AS (SELECT 1 AS id) SELECT id FROM patients)":                   false,
		"EXISTS (WITH patients AS (SELECT 1 AS id) SELECT FROM patients p WHERE p.id = e.patient)": false,
	} {
		_, err := planner.Make("SELECT ward, count(*) FROM encounters e WHERE "+of+" GROUP BY 1", session,
			familySnapshot())
		if (err == nil) != answered {
			t.Errorf("%s: %v", of, err)
		}
	}
}

// TestColumnsThatMayBeWithheldAnswerNothing: a data set says something of those alone of whom
// it is not withheld.
func TestColumnsThatMayBeWithheldAnswerNothing(t *testing.T) {
	session := planner.Session{Database: "hospital", SearchPath: []string{"pg_catalog", "public"}}
	snapshot := familySnapshot()
	root := snapshot.Protected(catalog.Name{Schema: "public", Name: "patients"})
	root.BlindCuts = true
	set := snapshot.DataSets(root)[0]
	set.Requirements = []catalog.Requirement{{Model: "l_diversity", Column: "operated", Parameter: 2}}
	for of, answered := range map[string]bool{
		"EXISTS (SELECT FROM encounters e WHERE e.patient = p.id)": true,
		"EXISTS (SELECT FROM encounters e WHERE p.born <= e.day AND e.patient = p.id AND e.ward = " +
			"'surgery')": false,
		"p.id IN (SELECT id FROM history h WHERE tailor.certain(h.age > 3 AND h.operated))": false,
	} {
		_, err := planner.Make("SELECT count(*) FROM patients p WHERE "+of, session, snapshot)
		if (err == nil) != answered {
			t.Errorf("%s: %v", of, err)
		}
	}
	_, err := planner.Make("SELECT tailor.count_bounds(age > 3 AND operated) FROM history", session,
		snapshot)
	if err == nil {
		t.Error("bounds are told by a column that is withheld of some")
	}
}

// TestWhatSessionsReadDifferentlyIsNotTheSame, although a data set has it word for word.
func TestWhatSessionsReadDifferentlyIsNotTheSame(t *testing.T) {
	for of, same := range map[string]bool{
		"(SELECT count(*) FROM encounters e WHERE e.patient = p.id AND e.day = ANY " +
			"('{2025-02-01,2025-04-03}'))": true,
		"(SELECT count(*) FROM encounters e, wards w WHERE e.patient = p.id AND w.code = " +
			"e.ward)": true,
		"(SELECT count(*) FROM encounters e WHERE e.patient = p.id AND e.ward LIKE " +
			"'Marchfield 3%')": true,
		"(SELECT count(*) FROM encounters e WHERE e.patient = p.id AND date_trunc('year', e.day) = " +
			"'2025-01-01')": true,
		"(SELECT count(*) FROM encounters e WHERE e.patient = p.id AND e.day BETWEEN '2025-01-01' AND " +
			"'2025-02-01 10:30')": true,
		"(SELECT count(*) FROM encounters e WHERE e.patient = p.id AND e.day = ANY " +
			"('{01/02/2025,03/04/2025}'))": false,
		"(SELECT count(*) FROM encounters e WHERE e.patient = p.id AND e.day > 'Thu " +
			"01/02/2025')": false,
		"(SELECT count(*) FROM encounters e WHERE e.patient = p.id AND e.day > '01 " +
			"02 2025')": false,
		"(SELECT count(*) FROM (SELECT e.* FROM encounters e WHERE e.patient = p.id) q WHERE q.seen > " +
			"'2020-03-04')": false,
		"(SELECT count(*) FROM encounters e WHERE e.patient = p.id AND e.precise > " +
			"'2020-03-04')": false,
		"(SELECT count(*) FROM encounters e, wards w WHERE e.patient = p.id AND w.since > " +
			"'2020-03-04')": false,
		"(SELECT count(*) FROM encounters e WHERE e.patient = p.id AND EXISTS (SELECT FROM (SELECT " +
			"ward AS day FROM encounters f) q WHERE day::date > '2020-03-04'))": false,
		"(SELECT count(*) FROM encounters e WHERE e.patient = p.id AND e.day > e.day - " +
			"'-1 2:00')": false,
		"(SELECT count(*) FROM encounters e WHERE e.patient = p.id AND e.day OPERATOR(public.>) " +
			"'2020-03-04')": false,
		"(SELECT count(*) FROM encounters e WHERE e.patient = p.id AND e.ward @@ 'x')": false,
		"(SELECT count(*) FROM encounters e WHERE e.patient = p.id AND extract(epoch FROM " +
			"'2020-03-04') > 3)": false,
		"(SELECT count(*) FROM encounters e WHERE e.patient = p.id AND (e.day, e.ward) > " +
			"('01/02/2020', 'x'))": false,
		"(SELECT count(*) FROM encounters e WHERE e.patient = p.id AND e.day IN ('2020-01-01', " +
			"'now'))": false,
		"(SELECT count(*) FROM encounters e TABLESAMPLE bernoulli (50) WHERE e.patient " +
			"= p.id)": false,
		"(SELECT count(*) FROM encounters e WHERE e.patient = p.id AND e.ward = " +
			"xmlforest(e.day)::text)": false,
	} {
		plan, err := planner.Make("SELECT count(*) FROM patients p WHERE "+of+" > 1", hospital,
			declared(of))
		if answered := err == nil &&
			strings.Contains(plan.Rewrite(release).SQL, `tailor_own_set."declared"`); answered != same {
			t.Errorf("%s: %v, %v", of, answered, err)
		}
	}
}
