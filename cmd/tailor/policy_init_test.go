package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/hiatus-tailor/tailor/anonymize/identify"
	"github.com/hiatus-tailor/tailor/catalog"
	"github.com/hiatus-tailor/tailor/internal/policyfile"
)

var updateInit = flag.Bool("update-init", false, "write the transcripts of policy init anew")

// surveyed measures a table of which each column is a function of the row.
func surveyed(
	name, primary string, keys []foreignKey, rows int,
	columns ...func(n int) (name, kind, cell string),
) *surveyedTable {
	var names []string
	var cells [][]string
	c := &classified{
		table: name, Identification: &catalog.Identification{Rows: rows, Share: 1, Subject: primary},
	}
	for _, column := range columns {
		var texts []string
		var title, kind string
		for n := range rows {
			var cell string
			title, kind, cell = column(n)
			texts = append(texts, cell)
		}
		k := identify.NewColumn(title, texts)
		k.Type, k.Key = kind, title == primary
		c.Columns = append(c.Columns, k)
		names, cells = append(names, title), append(cells, texts)
	}
	c.Cells = identify.NewRows(names, cells, rows, rows)
	t := &surveyedTable{name: name, keys: keys}
	t.look(c)
	return t
}

// number, text and day are columns of a table.
func number(name string, of func(n int) int) func(int) (string, string, string) {
	return func(n int) (string, string, string) { return name, "integer", strconv.Itoa(of(n)) }
}

func text(name string, of func(n int) string) func(int) (string, string, string) {
	return func(n int) (string, string, string) { return name, "text", of(n) }
}

// clinicSurvey has people, their stays, codes of their diseases, and a list that anybody reads.
func clinicSurvey() *survey {
	id := func(n int) int { return n }
	ill := func(n int) string { return []string{"asthma", "flu", "gout"}[n%3] }
	s := &survey{out: []string{"public.old: it is empty"}, refers: map[tableColumn]tableColumn{}}
	keys := []foreignKey{{"person", tableColumn{"public.people", "id"}}}
	people := surveyed("public.people", "id", nil, 400, number("id", id),
		text("name", func(n int) string { return fmt.Sprintf("person %d", n) }),
		number("age", func(n int) int { return 20 + n%60 }),
		text("sex", func(n int) string { return []string{"f", "m"}[n%2] }),
		text("diagnosis", ill))
	stays := surveyed("public.stays", "", keys, 800,
		number("person", func(n int) int { return n % 300 }),
		number("days", func(n int) int { return n % 9 }), text("diagnosis", ill))
	codes := surveyed("public.codes", "", keys, 900,
		number("person", func(n int) int { return n % 350 }),
		text("icd", func(n int) string { return fmt.Sprintf("%d.%d", 240+n%40, n%7) }))
	list := surveyed("public.list", "", nil, 30, number("code", id))
	list.open = true
	s.tables = []*surveyedTable{list, codes, people, stays}
	for _, t := range []*surveyedTable{stays, codes} {
		s.refers[tableColumn{t.name, "person"}] = keys[0].to
	}
	for _, t := range s.tables {
		t.suggest()
	}
	s.parentsFirst()
	return s
}

// newTestGuide weighs nothing: the loss is a percent for each of k.
func newTestGuide(s *survey, answers string, out *bytes.Buffer) *guide {
	g := &guide{
		survey: s, lines: readLines(strings.NewReader(answers)), out: out, echo: true,
	}
	g.settings, g.chosen = settings(0)
	g.weigh = func(_ context.Context, all []setting) ([][]effect, error) {
		var effects [][]effect
		for _, x := range all {
			var of []effect
			f, err := readBack(s.compose(x))
			if err != nil {
				return nil, err
			}
			for _, t := range f.Tables {
				forecast := &catalog.Forecast{
					Share: 1, Risk: 1 / float64(x.k), RawRisk: 1, Loss: float64(x.k) / 100,
					Losses: []float64{0},
				}
				if x.k == 11 && t.Name == "public.stays" {
					forecast.Unmet = "11-anonymity"
				}
				of = append(of, effect{t.Name, x.k, t.SetValued != nil, forecast})
			}
			effects = append(effects, of)
		}
		return effects, nil
	}
	return g
}

// asWritten compares with a file of testdata.
func asWritten(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *updateInit {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s is now\n%s\nwritten is\n%s", name, got, want)
	}
}

// TestTheGuideAsksTableByTable holds what is asked, what wrong answers are told and the file
// that comes of it against testdata; go test -update-init writes them anew.
func TestTheGuideAsksTableByTable(t *testing.T) {
	answers := []string{
		"b", "nobody", "?", "", // the list that everybody may read: left out
		"", "", "?", "z", "c", "", "q", "b", "", "k", // people: the diagnosis is kept, after all
		"", "",
		"", "q", "b", "b", "b", "", "", "", "", // stays
		"9", "1",
	}
	var out bytes.Buffer
	g := newTestGuide(clinicSurvey(), strings.Join(answers, "\n")+"\n", &out)
	f, err := g.policy(t.Context(), "public")
	if err != nil {
		t.Fatalf("%v after\n%s", err, out.String())
	}
	asWritten(t, "policy_init.txt", out.String())
	var file bytes.Buffer
	if err := f.Write(&file); err != nil {
		t.Fatal(err)
	}
	asWritten(t, "policy_init.yaml", file.String())
	if _, faults := policyfile.Parse(file.Bytes()); faults != nil {
		t.Errorf("the file has faults: %v", faults)
	}
	if _, more := <-g.lines; more {
		t.Error("not all answers were asked for")
	}
}

func TestTheGuideTakesWhatIsSuggested(t *testing.T) {
	var asked, silent bytes.Buffer
	g := newTestGuide(clinicSurvey(), strings.Repeat("\n", 30), &asked)
	byEnter, err := g.policy(t.Context(), "public")
	if err != nil {
		t.Fatal(err)
	}
	g = newTestGuide(clinicSurvey(), "", &silent)
	g.yes = true
	byYes, err := g.policy(t.Context(), "public")
	if err != nil {
		t.Fatal(err)
	}
	var one, other bytes.Buffer
	if err := errors.Join(byEnter.Write(&one), byYes.Write(&other)); err != nil {
		t.Fatal(err)
	}
	if one.String() != other.String() {
		t.Errorf("by Enter\n%s\nwith --yes\n%s", &one, &other)
	}
	if strings.Contains(silent.String(), "q, s, k, h") {
		t.Errorf("--yes asks:\n%s", &silent)
	}
	want := map[string]string{
		"public.people": "id", "public.codes": "person", "public.stays": "person",
	}
	for _, table := range byYes.Tables {
		if want[table.Name] != table.Subject || table.K != draftK {
			t.Errorf("%s is about %s with k = %d", table.Name, table.Subject, table.K)
		}
		delete(want, table.Name)
		switch set := table.SetValued; {
		case table.Name == "public.codes" && (set == nil || set.Column != "icd"):
			t.Errorf("the codes are no set: %v", set)
		case table.Name == "public.stays" && table.Column("diagnosis").Exact():
			t.Error("people and stays both show the diagnosis: together they link rows")
		}
	}
	if len(want) > 0 {
		t.Errorf("left out %v", want)
	}
}

func TestTheGuideEndsWithoutAPolicyWhenAnswersEnd(t *testing.T) {
	for n := range 12 {
		var out bytes.Buffer
		f, err := newTestGuide(clinicSurvey(), strings.Repeat("\n", n), &out).policy(
			t.Context(), "public")
		want := errors.Is(err, errNobodyAnswers)
		if n > 0 {
			refused := (*policyError)(nil)
			want = errors.As(err, &refused) && strings.Contains(refused.remedy, "nothing was written")
		}
		if f != nil || !want {
			t.Errorf("%d answers: %v, %v", n, f, err)
		}
	}
}

func TestTheGuideEndsWhenItIsInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("stop")
	cancel(stop)
	g := newTestGuide(clinicSurvey(), "", &bytes.Buffer{})
	g.lines = make(chan string) // nobody answers
	if f, err := g.policy(ctx, "public"); f != nil || !errors.Is(err, stop) {
		t.Errorf("%v, %v", f, err)
	}
}

func TestTablesThatDoNotMeetTheChosenKAreLeftOutWithTheReason(t *testing.T) {
	g := newTestGuide(clinicSurvey(), "", &bytes.Buffer{})
	g.yes, g.chosen = true, 2
	f, err := g.policy(t.Context(), "public")
	if err != nil {
		t.Fatal(err)
	}
	if len(f.Tables) != 2 || !slices.Contains(f.Remarks,
		"public.stays: all together do not meet 11-anonymity") {
		t.Errorf("%d tables, %q", len(f.Tables), f.Remarks)
	}
}

func TestColumnsWithoutAPlaceForAValueAreHidden(t *testing.T) {
	s := clinicSurvey()
	people := s.table("public.people")
	if !people.hideUncovered([]string{"age: no place for some values"}) {
		t.Error("age stays")
	}
	if people.hideUncovered([]string{"age: no place for some values"}) {
		t.Error("age is hidden twice, and measured for ever")
	}
	f := s.compose(setting{5, 3})
	for _, table := range f.Tables {
		if c := table.Column("age"); c != nil && c.Class != "direct_identifier" {
			t.Errorf("age is shown: %v", c)
		}
	}
}

func TestAPresetKIsAmongTheSettings(t *testing.T) {
	for k, want := range map[int]setting{
		0: {5, 3}, 2: {2, 2}, 3: {3, 2}, 4: {4, 3}, 8: {8, 4}, 11: {11, 4}, 50: {50, 4},
	} {
		all, chosen := settings(k)
		ascending := slices.IsSortedFunc(all, func(a, b setting) int { return a.k - b.k })
		if all[chosen] != want || !ascending || len(all) < 3 {
			t.Errorf("--k %d: %v, number %d", k, all, chosen+1)
		}
	}
}

func TestNothingThatMovesACursorIsPrinted(t *testing.T) {
	var out bytes.Buffer
	(&guide{out: &out}).say("%s\n", "a\x1b[2Jb\r\u009bc")
	if out.String() != "a?[2Jb??c\n" {
		t.Errorf("%q", out.String())
	}
}

func TestPolicyInitRefusesWrongArguments(t *testing.T) {
	there := file(t, "policy.yaml", "kept")
	for _, c := range []struct {
		args  []string
		fault string
	}{
		{[]string{"--dsn", ""}, "--dsn is missing"},
		{[]string{"--dsn", "host=x", "--k", "1"}, "--k must be at least 2"},
		{[]string{"--dsn", "host=x", "FILE"}, "the file is named with --out"},
		{[]string{"--dsn", "host=x", "--out", ""}, "--out names no file"},
		{[]string{"--dsn", "host=x", "--yes", "--out", there}, "is there already"},
	} {
		code, stdout, stderr := tailor(t, append([]string{"policy", "init"}, c.args...)...)
		if code != exitUsage || stdout != "" || !strings.Contains(stderr, c.fault) {
			t.Errorf("%q: exit %d, %q, %q", c.args, code, stdout, stderr)
		}
	}
	if kept, err := os.ReadFile(there); err != nil || string(kept) != "kept" {
		t.Errorf("%q, %v", kept, err)
	}
}
