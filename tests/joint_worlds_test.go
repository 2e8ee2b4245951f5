package tests

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// publicationOf is all that a joint publication says, in an order that tells nothing: its
// clusters, each with its chunks and their sub-records, and the labels of its people.
func publicationOf(t *testing.T, direct, conn *pgx.Conn) []string {
	t.Helper()
	epoch := one[int](
		t,
		direct,
		`SELECT epoch FROM tailor.chain WHERE relation = 'diagnoses'::regclass`,
	)
	rows := rowsOf(t, direct, strings.ReplaceAll(`
		WITH chunk AS (
			SELECT chunk, string_agg(concat_ws(' x ', records, codes), '; ' ORDER BY records, codes)
				AS content
			FROM (SELECT s.chunk, s.records, (SELECT string_agg(i.code || i.nth, ' '
				ORDER BY i.code, i.nth) FROM tailor_store.item_N i WHERE i.item = ANY (s.items)) AS codes
			      FROM tailor_store.subrecord_N s) q GROUP BY chunk)
		SELECT string_agg(concat_ws(' ', p.size, p.kind, p.slots, i.code, i.nth,
			round(p.share::numeric, 9), c.content), ' | '
			ORDER BY p.kind, i.code, i.nth)
		FROM tailor_store.place_N p JOIN tailor_store.item_N i USING (item) LEFT JOIN chunk c
			USING (chunk) GROUP BY p.cluster`, "_N", fmt.Sprintf("_%d", epoch)))
	rows = append(
		rows,
		rowsOf(
			t,
			conn,
			`SELECT tailor.label(sex), tailor.label(age), tailor.label(zip), count(DISTINCT p.id)
		FROM patients p LEFT JOIN diagnoses d ON d.patient_id = p.id GROUP BY 1, 2, 3`,
		)...)
	slices.Sort(rows)
	return rows
}

// TestJointPublicationsTellNobodysCodesApart exchanges the codes of two people of one group
// and publishes anew: the publication says the same, and so does all else of the family.
// From outside it checks that whoever knows any two codes of somebody finds k records.
func TestJointPublicationsTellNobodysCodesApart(t *testing.T) {
	const k, people = 5, 1500
	world := func(name string, changes ...string) (direct, conn *pgx.Conn, said []string) {
		t.Helper()
		direct, p := studyHospital(t, name, people, changes...)
		conn = connect(t, p.dsn("researcher"))
		for _, table := range []string{"patients", "visits", "diagnoses", "readmissions"} {
			answeredSoon(t, conn, "SELECT count(*) FROM "+table)
		}
		said = publicationOf(t, direct, conn)
		for _, sql := range []string{
			`SELECT tailor.label(birth_date), tailor.label(p.age), tailor.label(p.sex),
				tailor.label(race), tailor.label(p.zip), ward, diagnosis, cost,
				visits, emergencies, wards, recent, days_to_readmission, readmitted FROM patients p
				JOIN readmissions r USING (id)`,
			`SELECT tailor.label(day), tailor.label(ward), cost FROM visits`,
		} {
			rows := rowsOf(t, conn, sql)
			slices.Sort(rows)
			said = append(said, rows...)
		}
		return direct, conn, said
	}
	direct, conn, first := world("joint_world")

	t.Run("any two codes", func(t *testing.T) {
		epoch := one[int](
			t,
			direct,
			`SELECT epoch FROM tailor.chain WHERE relation = 'diagnoses'::regclass`,
		)
		for what, sql := range map[string]string{
			"clusters": `SELECT count(*) FROM tailor_store.place_N WHERE size < 5`,
			"records with one code": `SELECT count(*) FROM (SELECT chunk, i, sum(records) AS n ` +
				`FROM tailor_store.subrecord_N s, unnest(s.items) i GROUP BY 1, 2) q WHERE n < 5`,
			"records with two codes": `SELECT count(*) FROM (SELECT chunk, i, j, sum(records) AS n ` +
				`FROM tailor_store.subrecord_N s, unnest(s.items) i, unnest(s.items) j WHERE i < j ` +
				`GROUP BY 1, 2, 3) q WHERE n < 5`,
			"codes that stand nowhere": `SELECT count(*) FROM tailor_store.item_N ` +
				`WHERE item NOT IN (SELECT item FROM tailor_store.place_N)`,
			"codes twice in a cluster": `SELECT count(*) FROM (SELECT FROM tailor_store.place_N ` +
				`GROUP BY cluster, item HAVING count(*) > 1) q`,
			"chunks beyond their place": `SELECT count(*) FROM tailor_store.subrecord_N s ` +
				`WHERE NOT EXISTS (SELECT FROM tailor_store.place_N p WHERE p.chunk = s.chunk ` +
				`AND p.item = ANY (s.items))`,
		} {
			if n := one[int](
				t,
				direct,
				strings.ReplaceAll(sql, "_N", fmt.Sprintf("_%d", epoch)),
			); n > 0 {
				t.Errorf("%s: %d", what, n)
			}
		}
	})
	t.Run("whoever knows quasi-identifiers and two codes", func(t *testing.T) {
		// Of each person: the people whom the labels cover, and who can have what is known.
		type record struct{ sex, age, zip string }
		groups := make(map[record]int)
		for _, row := range rowsOf(t, conn,
			`SELECT tailor.label(sex), tailor.label(age), tailor.label(zip), count(DISTINCT p.id)
			FROM patients p LEFT JOIN diagnoses d ON d.patient_id = p.id GROUP BY 1, 2, 3`) {
			f := strings.Split(row, "|")
			groups[record{f[0], f[1], f[2]}] = int(figure(f[3]))
		}
		for _, row := range rowsOf(t, direct, `SELECT DISTINCT sex, age, zip FROM patients`) {
			f := strings.Split(row, "|")
			there := 0
			for g, n := range groups {
				if covers(g.sex, f[0]) && covers(g.age, f[1]) && covers(g.zip, f[2]) {
					there += n
				}
			}
			if there < 40*k {
				t.Errorf("%s: %d records", row, there)
			}
		}
	})

	// Two people whom one group alone covers, and who have other codes and demographics.
	type person struct{ id, row, codes string }
	var candidates []person
	labels := rowsOf(
		t,
		conn,
		`SELECT DISTINCT tailor.label(sex), tailor.label(age), tailor.label(zip) FROM patients p LEFT `+
			`JOIN diagnoses d ON d.patient_id = p.id`,
	)
	groupOf := make(map[string]string)
	for _, row := range rowsOf(t, direct,
		`SELECT p.id, p.sex, p.age, p.zip, string_agg(code, ' ' ORDER BY code) FROM patients p `+
			`JOIN diagnoses d ON d.patient_id = p.id GROUP BY p.id ORDER BY p.id`) {
		f := strings.Split(row, "|")
		var in []string
		for _, l := range labels {
			g := strings.Split(l, "|")
			if covers(g[0], f[1]) && covers(g[1], f[2]) && covers(g[2], f[3]) {
				in = append(in, l)
			}
		}
		if len(in) == 1 {
			candidates = append(candidates, person{f[0], strings.Join(f[1:4], "|"), f[4]})
			groupOf[f[0]] = in[0]
		}
	}
	var a, b person
	for i := 1; i < len(candidates) && b.id == ""; i++ {
		x, y := candidates[0], candidates[i]
		if groupOf[x.id] == groupOf[y.id] && x.row != y.row &&
			!strings.Contains(x.codes, y.codes) &&
			!strings.Contains(y.codes, x.codes) {
			a, b = x, y
		}
	}
	if b.id == "" {
		t.Fatal("there are no two")
	}
	_, _, second := world(
		"joint_other",
		fmt.Sprintf(
			`CREATE TEMP TABLE apart AS SELECT * FROM diagnoses WHERE patient_id IN (%[1]s, %[2]s);
		DELETE FROM diagnoses WHERE patient_id IN (%[1]s, %[2]s);
			INSERT INTO diagnoses SELECT %[1]s + %[2]s - patient_id, code FROM apart`,
			a.id,
			b.id,
		),
	)
	for i := range min(len(first), len(second)) {
		if first[i] != second[i] {
			t.Fatalf(
				"%s and %s can be told apart:\n%.600s\n%.600s",
				a.id,
				b.id,
				first[i],
				second[i],
			)
		}
	}
	if len(first) != len(second) {
		t.Errorf("%d rows, and %d", len(first), len(second))
	}
	t.Run("people of two groups", func(t *testing.T) {
		// The comparison would see it.
		var c person
		for _, x := range candidates {
			if groupOf[x.id] != groupOf[a.id] && !strings.Contains(a.codes, x.codes) &&
				!strings.Contains(x.codes, a.codes) {
				c = x
			}
		}
		_, _, third := world(
			"joint_third",
			fmt.Sprintf(
				`CREATE TEMP TABLE apart AS SELECT * FROM diagnoses WHERE patient_id IN (%[1]s, %[2]s);
			DELETE FROM diagnoses WHERE patient_id IN (%[1]s, %[2]s);
				INSERT INTO diagnoses SELECT %[1]s + %[2]s - patient_id, code FROM apart`,
				a.id,
				c.id,
			),
		)
		if slices.Equal(first, third) {
			t.Error("codes of two groups are exchanged, and nobody sees it")
		}
	})
}
