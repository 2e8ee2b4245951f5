package planner_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	pg "github.com/pganalyze/pg_query_go/v5"

	"github.com/hiatus-tailor/tailor/catalog"
	"github.com/hiatus-tailor/tailor/internal/sqlstate"
	"github.com/hiatus-tailor/tailor/planner"
)

var update = flag.Bool("update", false, "rewrite the expected plans")

// hospitalSnapshot is the demo's policy as the planner sees it.
func hospitalSnapshot() *catalog.Snapshot {
	prefix, interval := &catalog.HierarchySpec{Name: "h", Kind: "prefix"},
		&catalog.HierarchySpec{Name: "i", Kind: "interval"}
	qid := func(name, pgType, category string, number int) catalog.Column {
		hierarchy := prefix
		if category != "S" {
			hierarchy = interval
		}
		return catalog.Column{
			Name: name, Number: number, Type: pgType, Category: category,
			Class: catalog.QuasiIdentifier, Hierarchy: hierarchy,
		}
	}
	patients := &catalog.Relation{
		OID: 1, Schema: "public", Name: "patients", Subject: "id", K: 5,
		OneRow: true, Columns: []catalog.Column{
			{Name: "id", Number: 1, Type: "integer", Class: catalog.DirectIdentifier},
			{Name: "name", Number: 2, Type: "text", Class: catalog.DirectIdentifier},
			{Name: "ssn", Number: 3, Type: "text"},
			qid("birth_date", "date", "D", 4), qid("age", "integer", "N", 5), qid("sex", "text", "S", 6),
			qid("zip", "text", "S", 7),
			{Name: "diagnosis", Number: 8, Type: "text", Class: catalog.Sensitive},
			{Name: "cost", Number: 9, Type: "numeric(10,2)", Class: catalog.NonSensitive},
			qid("Odd Name", "text", "S", 10),
		},
	}
	diagnoses := &catalog.Relation{
		OID: 2, Schema: "public", Name: "diagnoses", Subject: "patient_id",
		K: 5, Subjects: 70, Columns: []catalog.Column{
			{Name: "patient_id", Number: 1, Type: "integer", Class: catalog.DirectIdentifier},
			{Name: "code", Number: 2, Type: "text", Class: catalog.Sensitive},
		},
	}
	conditions := &catalog.Relation{
		OID: 3, Schema: "public", Name: "conditions", Subject: "patient_id", K: 5,
		SetValued: &catalog.SetValued{Column: "code", M: 2},
		Columns: []catalog.Column{
			{
				Name: "patient_id", Number: 1, Type: "integer", Class: catalog.DirectIdentifier,
				Pseudonym: true,
			},
			{Name: "code", Number: 2, Type: "text", Class: catalog.Sensitive},
			{Name: "day", Number: 3, Type: "date"},
		},
	}
	lab := &catalog.Relation{
		OID: 4, Schema: "public", Name: "lab", Subject: "patient_id", K: 5,
		Columns: []catalog.Column{
			{Name: "result", Number: 2, Type: "text", Class: catalog.Sensitive},
		},
	}
	// Two that answer with aggregates only; the second cannot count subjects.
	staff := &catalog.Relation{
		OID: 5, Schema: "public", Name: "staff", Subject: "id", K: 5,
		OneRow: true, AggregateOnly: true, Columns: []catalog.Column{
			{Name: "id", Number: 1, Type: "integer", Class: catalog.DirectIdentifier},
			qid("age", "integer", "N", 2), qid("sex", "text", "S", 3),
			{Name: "unit", Number: 4, Type: "text", Class: catalog.Sensitive},
			{Name: "pay", Number: 5, Type: "numeric(10,2)", Class: catalog.NonSensitive},
			{Name: "hired", Number: 6, Type: "date", Class: catalog.NonSensitive},
			{Name: "bonus", Number: 7, Type: "double precision", Class: catalog.NonSensitive},
			{Name: "hours", Number: 8, Type: "real", Class: catalog.NonSensitive},
			{Name: "debt", Number: 9, Type: "numeric", Class: catalog.Sensitive},
			{Name: "leave", Number: 10, Type: "interval", Class: catalog.Sensitive},
			{Name: "nick", Number: 11, Type: "citext", Class: catalog.Sensitive},
			{Name: "town", Number: 12, Type: "text", Class: catalog.Sensitive},
		},
	}
	shifts := &catalog.Relation{
		OID: 6, Schema: "public", Name: "shifts", Subject: "staff_id", K: 5,
		AggregateOnly: true, Columns: []catalog.Column{
			{Name: "hours", Number: 2, Type: "integer", Class: catalog.NonSensitive},
		},
	}
	// encounters have quasi-identifiers of their own and stays have none; what
	// transfers borrow is not what patients have now, and audits are shared by
	// fewer people.
	encounters := &catalog.Relation{
		OID: 15, Schema: "public", Name: "encounters",
		Subject: "patient_id", K: 5, Subjects: 90, References: []uint32{1}, Columns: []catalog.Column{
			{Name: "id", Number: 1, Type: "integer", Class: catalog.DirectIdentifier},
			{Name: "patient_id", Number: 2, Type: "integer", Class: catalog.DirectIdentifier},
			qid("day", "date", "D", 3), qid("kind", "text", "S", 4),
			{Name: "fee", Number: 5, Type: "integer", Class: catalog.NonSensitive},
			{Name: "note", Number: 6, Type: "text", Class: catalog.Sensitive},
		},
	}
	child := func(oid uint32, name string) *catalog.Relation {
		return &catalog.Relation{
			OID: oid, Schema: "public", Name: name, Subject: "id", K: 5,
			References: []uint32{1}, Columns: []catalog.Column{
				{Name: "id", Number: 1, Type: "integer", Class: catalog.DirectIdentifier},
				{Name: "ward", Number: 2, Type: "text", Class: catalog.NonSensitive},
			},
		}
	}
	stays, transfers, audits := child(16, "stays"), child(17, "transfers"), child(18, "audits")
	lent := func(inStep, narrow bool) *catalog.Parent {
		p := &catalog.Parent{
			Schema: "public", Name: "patients", Subject: "id", InStep: inStep,
			Narrow: narrow,
		}
		for _, c := range patients.QuasiIdentifiers() {
			p.Columns = append(p.Columns, *c)
		}
		return p
	}
	encounters.Borrow(lent(true, false), 5)
	stays.Borrow(lent(true, false), 5)
	transfers.Borrow(lent(false, false), 5)
	audits.Borrow(lent(true, true), 5)
	rota := child(19, "rota") // of staff, who answer with aggregates only
	rota.References = []uint32{5}
	rota.Borrow(&catalog.Parent{
		Schema: "public", Name: "staff", Subject: "id", InStep: true,
		Columns: staff.Columns[1:3],
	}, 5)
	// Published together with age and sex of the patients.
	drugs := &catalog.Relation{
		OID: 20, Schema: "public", Name: "drugs", Subject: "patient_id", K: 5, References: []uint32{1},
		SetValued: &catalog.SetValued{
			Column: "code", M: 2,
			Joint: &catalog.Joint{Columns: []string{"sex", "age"}},
		},
		Columns: []catalog.Column{
			{
				Name: "patient_id", Number: 1, Type: "integer", Class: catalog.DirectIdentifier,
				Pseudonym: true,
			},
			{Name: "code", Number: 2, Type: "text", Class: catalog.Sensitive},
		},
	}
	both := lent(true, false)
	both.Subject = "id"
	both.Columns = slices.DeleteFunc(both.Columns, func(c catalog.Column) bool {
		return c.Name != "age" && c.Name != "sex"
	})
	drugs.Borrow(both, 5)
	return catalog.NewSnapshot(1, []*catalog.Relation{
		patients, diagnoses, conditions, lab, staff,
		shifts, encounters, stays, transfers, audits, rota, drugs,
	}, map[catalog.Name]*catalog.Other{
		{Schema: "public", Name: "zip_city"}: {Columns: []string{"zip", "city"}},
		{Schema: "public", Name: "names"}:    {Columns: []string{"name", "n"}},
		{Schema: "public", Name: "cities"}:   {Columns: []string{"city", "population"}},
		{Schema: "public", Name: "old_patients"}: {
			Columns: []string{"name"}, Reaches: "patients",
			Definition: " SELECT patients.name\n   FROM public.patients\n  WHERE (patients.age > 90);",
		},
		{Schema: "public", Name: "elderly"}: {
			Columns: []string{"years", "zip", "diagnosis"}, Reaches: "patients",
			Definition: " SELECT patients.age AS years,\n    patients.zip,\n    patients.diagnosis\n   " +
				"FROM public.patients\n  WHERE (patients.age > 60);",
		},
		{Schema: "public", Name: "elderly_by_zip"}: {
			Columns: []string{"zip", "people"}, Reaches: "patients",
			Definition: " SELECT elderly.zip,\n    count(*) AS people\n   FROM public.elderly\n  GROUP BY " +
				"elderly.zip;",
		},
		{Schema: "public", Name: "mixed_ages"}: {
			Columns: []string{"age"}, Reaches: "patients",
			Definition: " SELECT patients.age\n   FROM public.patients\n  WHERE (patients.sex = " +
				"'male'::text)\nINTERSECT\n SELECT patients.age\n   FROM public.patients\n  WHERE " +
				"(patients.sex = 'female'::text)\n  ORDER BY 1;",
		},
		{Schema: "public", Name: "well_paid"}: {
			Columns: []string{"unit", "pay"}, Reaches: "staff",
			Definition: " SELECT staff.unit,\n    staff.pay\n   FROM public.staff\n  WHERE (staff.pay > " +
				"(100)::numeric);",
		},
		{Schema: "public", Name: "on_duty"}: {
			Columns: []string{"age", "ward"}, Reaches: "staff",
			Definition: " SELECT s.age,\n    r.ward\n   FROM (public.rota r\n     JOIN public.staff s " +
				"USING (id));",
		},
		{Schema: "public", Name: "seen"}: {
			Columns: []string{"age", "day"}, Reaches: "patients",
			Definition: " SELECT p.age,\n    e.day\n   FROM (public.patients p\n     JOIN " +
				"public.encounters e ON ((e.patient_id = p.id)));",
		},
		{Schema: "public", Name: "stored_patients"}: {Columns: []string{"age"}, Reaches: "patients"},
		{Schema: "other", Name: "patients"}:         {Columns: []string{"age"}},
	})
}

// session is that of a reader who has made a temporary table, which hides the
// protected one of the same name.
var session = planner.Session{
	Database:   "hospital",
	SearchPath: []string{"pg_temp_3", "pg_catalog", "public"},
	Temporary:  map[string][]string{"lab": {"age", "result"}},
}

// show is a plan or a refusal as the golden files hold it.
func show(statement string) string {
	plan, err := planner.Make(statement, session, hospitalSnapshot())
	var out strings.Builder
	var refusal *sqlstate.Error
	switch {
	case errors.As(err, &refusal):
		fmt.Fprintf(&out, "refuse %s: %s\n", refusal.Code, refusal.Message)
		if refusal.Detail != "" {
			fmt.Fprintf(&out, "detail: %s\n", refusal.Detail)
		}
		if refusal.Hint != "" {
			fmt.Fprintf(&out, "hint: %s\n", refusal.Hint)
		}
		if refusal.Position > 0 {
			fmt.Fprintf(&out, "position: %d\n", refusal.Position)
		}
	case err != nil:
		fmt.Fprintf(&out, "fault: %v\n", err)
	case plan.Passes():
		out.WriteString("pass\n")
	default:
		out.WriteString("release")
		for _, r := range plan.Relations {
			fmt.Fprintf(&out, " %s", r)
		}
		for _, r := range plan.Parents {
			fmt.Fprintf(&out, " through it %s", r)
		}
		out.WriteString("\n")
		for _, u := range plan.Uses {
			fmt.Fprintf(&out, "use %s: %s.%s\n", u.Place, u.Table, u.Attribute)
		}
		for _, o := range plan.Outputs {
			fmt.Fprintln(&out, strings.TrimSpace(fmt.Sprintf("output %q: %s %s", o.Name, o.Kind, o.Of)))
		}
		for _, c := range plan.Cursors {
			fmt.Fprintf(&out, "cursor %q hold %t\n", c.Name, c.Hold)
		}
		fmt.Fprintf(&out, "\n%s\n", plan.Rewrite(release).SQL)
	}
	return out.String()
}

func release(r *catalog.Relation) string { return fmt.Sprintf("chain_%d", r.OID) }

func TestPlansAreAsReviewed(t *testing.T) {
	files, err := filepath.Glob("testdata/*/*.sql")
	if err != nil || len(files) == 0 {
		t.Fatalf("no statements: %v", err)
	}
	for _, file := range files {
		outcome := filepath.Base(filepath.Dir(file))
		t.Run(outcome+"/"+strings.TrimSuffix(filepath.Base(file), ".sql"), func(t *testing.T) {
			statement, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := show(string(statement))
			if !strings.HasPrefix(got, outcome) {
				t.Errorf("among those with outcome %s, got\n%s", outcome, got)
			}
			expected := strings.TrimSuffix(file, ".sql") + ".txt"
			if *update {
				if err := os.WriteFile(expected, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(expected)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

func TestPositionsOfErrorsPointIntoTheClientsText(t *testing.T) {
	statement := "SELECT 'ä', nothing, age FROM patients p WHERE sex = wrong ORDER BY age"
	plan, err := planner.Make(statement, session, hospitalSnapshot())
	if err != nil {
		t.Fatal(err)
	}
	rewritten := plan.Rewrite(release)
	for _, word := range []string{"nothing", "wrong", "ORDER"} {
		at := len([]rune(rewritten.SQL[:strings.LastIndex(rewritten.SQL, word)])) + 1
		want := len([]rune(statement[:strings.LastIndex(statement, word)])) + 1
		if got := rewritten.Position(at, statement); got != want {
			t.Errorf("%s: position %d, want %d", word, got, want)
		}
	}
}

// protectedNames lists the protected relations that a tree names, found in its
// printed form rather than by the planner's own search.
func protectedNames(node *pg.Node, snapshot *catalog.Snapshot) []string {
	var names []string
	for _, m := range relationName.FindAllStringSubmatch(fmt.Sprint(node), -1) {
		schema := m[1]
		if schema == "" {
			schema = "public"
			if session.Temporary[m[2]] != nil {
				continue
			}
		}
		if snapshot.Protected(catalog.Name{Schema: schema, Name: m[2]}) != nil {
			names = append(names, m[2])
		}
	}
	return names
}

var relationName = regexp.MustCompile(
	`range_var:\{(?:catalogname:"[^"]*"\s+)?(?:schemaname:"([^"]*)"\s+)?relname:"([^"]*)"`)

// assertClassified counts the output columns of a rewritten query, where its
// text lists them all, against those that the plan classifies.
func assertClassified(t *testing.T, plan *planner.Plan, query *pg.SelectStmt) {
	t.Helper()
	for _, o := range plan.Outputs {
		if o.Kind == "" || o.Kind == planner.Label && o.Of == "" {
			t.Fatalf("output %q is classified as %q of %q", o.Name, o.Kind, o.Of)
		}
	}
	for query != nil && query.Op != pg.SetOperation_SETOP_NONE {
		query = query.Larg
	}
	if query == nil || len(query.ValuesLists) > 0 {
		return
	}
	for _, target := range query.TargetList {
		fields := target.GetResTarget().GetVal().GetColumnRef().GetFields()
		if len(fields) > 0 && fields[len(fields)-1].GetAStar() != nil {
			return
		}
	}
	if len(plan.Outputs) != len(query.TargetList) {
		t.Fatalf("%d output columns are classified, the query has %d", len(plan.Outputs),
			len(query.TargetList))
	}
}

// FuzzMake asserts for any text a refusal or a plan that classifies every
// output column, whose rewritten text is SQL again and names no protected
// relation.
func FuzzMake(f *testing.F) {
	files, _ := filepath.Glob("testdata/*/*.sql")
	for _, file := range files {
		statement, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(statement))
	}
	snapshot := hospitalSnapshot()
	f.Fuzz(func(t *testing.T, statement string) {
		plan, err := planner.Make(statement, session, snapshot)
		if err != nil {
			var refusal *sqlstate.Error
			if !errors.As(err, &refusal) {
				t.Fatalf("not a refusal: %v", err)
			}
			return
		}
		if plan.Passes() {
			return
		}
		tree, err := pg.Parse(plan.Rewrite(release).SQL)
		if err != nil {
			t.Fatalf("the rewritten text is no SQL: %v\n%s", err, plan.Rewrite(release).SQL)
		}
		if len(tree.Stmts) == 1 {
			assertClassified(t, plan, tree.Stmts[0].Stmt.GetSelectStmt())
		}
		for _, s := range tree.Stmts {
			if s.Stmt.GetSelectStmt() == nil && s.Stmt.GetVariableSetStmt() == nil {
				continue
			}
			if left := protectedNames(s.Stmt, snapshot); left != nil {
				t.Fatalf("left in the rewritten text: %v", left)
			}
		}
	})
}
