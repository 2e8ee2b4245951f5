package tests

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/jackc/pgx/v5"
)

// stewardStand is a hospital of which there is something to see: two versions of a policy, a
// schedule, a declared workload, people who wait, statements of readers and of their tools.
func stewardStand(t *testing.T) (context.Context, string) {
	t.Helper()
	ctx := chromium(t)
	s, err := newStand(filepath.Join(stands, "steward-"+strings.ToLower(t.Name())))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.cluster.Stop)
	direct := s.superuser(t)
	mustExec(t, direct, `SET SESSION AUTHORIZATION dba`)
	for _, sql := range []string{
		`CALL tailor.protect('public.patients', subject => 'id', k => 6)`,
		`CALL tailor.seed('public.patients', '[["age", "zip"], ["sex", "race"]]')`,
		`CALL tailor.activate('public.patients')`,
		`CALL tailor.schedule('public.patients', '24 hours')`,
		// As TestFidelityKeepsWhatItHasMeasured has it.
		`CALL tailor.keep_fidelity('public.patients', '{"queries": 12, "compared": 10,
			"coverage": 0.998, "cells": 240, "median": 0.003, "p90": 0.021,
			"columns": [{"name": "age", "queries": 7, "share": 0.8, "median": 0.004, "p90": 0.03}],
			"refused": [{"name": "names by age", "reason": "42501 permission denied"}]}')`,
	} {
		mustExec(t, direct, sql)
	}
	port, err := freePort()
	if err != nil {
		t.Fatal(err)
	}
	address := fmt.Sprintf("127.0.0.1:%d", port)
	p := s.serve(t, "--console", address)
	// Two more patients, who are too few to be shown.
	conn := connect(t, p.dsn("researcher"))
	ask := func(sql string) {
		_, _ = conn.Exec(t.Context(), sql, pgx.QueryExecModeSimpleProtocol)
	}
	ask("SELECT age, zip, sex, diagnosis FROM patients")
	mustExec(t, direct, `INSERT INTO patients SELECT id + 1000000, name, ssn, birth_date, age, sex,
		race, zip, ward, diagnosis, cost FROM patients ORDER BY id LIMIT 2`)
	mustExec(t, direct, `CALL tailor.refresh('public.patients')`)
	waitFor(t, func() bool {
		ask("SELECT race, birth_date, count(*) FROM patients WHERE age > 40 GROUP BY 1, 2")
		time.Sleep(200 * time.Millisecond)
		return one[bool](t, direct, `SELECT arrivals > 0 FROM tailor.epochs
			WHERE relation = 'public.patients'::regclass`)
	})
	ask("SELECT name FROM patients")
	ask("SELECT ward, avg(cost) FROM visits GROUP BY ward")
	ask("SELECT count(*) FROM numbers")
	for range 3 {
		if _, complaint, ok := p.psql(t, "researcher", "-c", `\d numbers`); !ok {
			t.Fatal(complaint)
		}
	}
	mustExec(t, direct, `RESET SESSION AUTHORIZATION`)
	mustExec(t, direct, `CREATE ROLE "=1+1" LOGIN PASSWORD '=1+1'; CALL tailor.grant_reader('=1+1')`)
	waitFor(t, func() bool {
		return one[int](t, direct, `SELECT count(*) FROM tailor.audit WHERE sqlstate = '42501'`) > 0
	})

	url := "http://" + address + "/"
	look(t, ctx, chromedp.Navigate(url), chromedp.WaitVisible("#password"),
		chromedp.SetValue("#user", "dba"), chromedp.SetValue("#password", "dba"),
		chromedp.Focus("#password"), chromedp.KeyEvent("\r"),
		until(`document.querySelector('#principal').textContent === 'dba'`),
		until(`document.querySelector('h1')?.textContent === 'Overview'`))
	return ctx, url
}

// chromium is a browser of the test, with a list of what its pages complain of.
func chromium(t *testing.T) context.Context {
	ctx := browser(t)
	chromedp.ListenTarget(ctx, func(event any) {
		switch e := event.(type) {
		case *runtime.EventExceptionThrown:
			t.Errorf("the page complains: %s", e.ExceptionDetails.Error())
		case *page.EventJavascriptDialogOpening:
			t.Errorf("the page has a dialog: %s", e.Message)
		}
	})
	return ctx
}

// at goes to a page by its link, as one who was given it.
func at(hash, heading string) chromedp.Tasks {
	return chromedp.Tasks{
		chromedp.Evaluate(fmt.Sprintf(
			"document.title = ''; location.hash = '#nowhere'; location.hash = %q", hash), nil),
		until(fmt.Sprintf(`location.hash === %q && document.title.startsWith(%q)`,
			hash, heading+" – ")),
	}
}

// pages are all that the console has, by their links and headings. That of a statement is found.
func pages(t *testing.T, ctx context.Context) [][3]string {
	var statement string
	look(t, ctx, at("#queries?verdict=released&relation=public.patients", "Statements"),
		chromedp.Evaluate(`document.querySelector('tbody a').getAttribute('href')`, &statement))
	return [][3]string{
		{"overview", "#overview", "Overview"},
		{"tables", "#tables", "Tables"},
		{"table", "#table?name=public.patients&from=1&to=2", "public.patients"},
		{"table-codes", "#table?name=public.diagnoses", "public.diagnoses"},
		{"queries", "#queries", "Statements"},
		{"query", statement, "Statement"},
		{"chains", "#chains", "Chains"},
		{"policies", "#policies", "Policies"},
		{"draft", "#draft", "Draft a policy"},
		{"epochs", "#epochs", "Epochs"},
		{"doctor", "#doctor", "Doctor"},
	}
}

// TestConsolePagesFitEveryScreen looks at each page on a telephone, a tablet and a desk, in light
// and in dark; by default, on two of these six.
func TestConsolePagesFitEveryScreen(t *testing.T) {
	ctx, _ := stewardStand(t)
	all := pages(t, ctx)
	for _, scheme := range []string{"light", "dark"} {
		look(t, ctx, emulation.SetEmulatedMedia().WithFeatures(
			[]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}))
		for _, width := range []int64{390, 768, 1440} {
			if !soaks() && (width != 390 || scheme != "dark") && (width != 1440 || scheme != "light") {
				continue
			}
			look(t, ctx, emulation.SetDeviceMetricsOverride(width, 900, 1, width < 400))
			for _, p := range all {
				where := fmt.Sprintf("page-%s-%d-%s", p[0], width, scheme)
				var wide int64
				look(t, ctx, at(p[1], p[2]),
					chromedp.Evaluate(`document.documentElement.scrollWidth`, &wide))
				if wide > width {
					t.Errorf("%s is %d wide", where, wide)
				}
				if width != 768 {
					accessible(t, ctx, where)
				}
				picture(t, ctx, where)
			}
		}
	}
}

// TestConsoleIsReachedByKeyboardAlone goes through each page with Tab: whatever can be used has
// had the focus.
func TestConsoleIsReachedByKeyboardAlone(t *testing.T) {
	soakOnly(t)
	ctx, _ := stewardStand(t)
	for _, p := range pages(t, ctx) {
		var missed []string
		look(t, ctx, at(p[1], p[2]), chromedp.Evaluate(`
			window.had = new Set();
			document.addEventListener('focusin', (e) => window.had.add(e.target));
			window.toReach = () => [...document.querySelectorAll(
				'a[href], button, input, select, summary, [tabindex="0"]')]
				.filter((e) => e.checkVisibility() && !window.had.has(e));
			document.activeElement.blur()`, nil))
		for range 40 { // fields of times have several stops
			var keys chromedp.Tasks
			for range 10 {
				keys = append(keys, chromedp.KeyEvent("\t"))
			}
			look(t, ctx, keys, chromedp.Evaluate(
				`window.toReach().map((e) => e.outerHTML.slice(0, 120))`, &missed))
			if len(missed) == 0 {
				break
			}
		}
		for _, element := range missed {
			t.Errorf("%s: the keyboard does not reach %s", p[0], element)
		}
	}
	// A whole task: from the first page to a stage of a graph.
	focus := func(expression string) {
		t.Helper()
		for range 200 {
			var there bool
			look(t, ctx, chromedp.KeyEvent("\t"), chromedp.Evaluate(fmt.Sprintf(
				`((e) => %s)(document.activeElement)`, expression), &there))
			if there {
				return
			}
		}
		t.Fatalf("the keyboard does not come to %s", expression)
	}
	look(t, ctx, at("#overview", "Overview"))
	focus(`e.textContent === 'public.patients'`)
	look(t, ctx, chromedp.KeyEvent("\r"), until(`document.title.startsWith('public.patients')`))
	focus(`e.matches('a[href^="#query?"]') && e.closest('tr').textContent.includes('released')`)
	look(t, ctx, chromedp.KeyEvent("\r"), until(`document.querySelector('.stage[role=button]')`))
	focus(`e.matches('.stage')`)
	look(t, ctx, chromedp.KeyEvent("\r"), until(`document.querySelector('#candidates h3')`))
}

// stewardTasks are what somebody asks who answers for the data. Each begins at the first page.
var stewardTasks = []struct {
	task   string
	clicks []string // XPath of what is clicked
	typed  string   // into the search
	shows  string
}{
	{
		"is every class as large as k",
		[]string{`//a[.="public.patients"]`},
		"",
		"smallest class; k is 6",
	},
	{
		"do the classes meet the privacy model",
		[]string{`//a[.="public.patients"]`},
		"",
		"l_diversity of 2 on diagnosis0yes",
	},
	{
		"who reads the table",
		[]string{`//a[.="public.patients"]`},
		"",
		"Readers, and what they asked",
	},
	{
		"how fresh is it, and who waits since when",
		[]string{`//a[.="public.patients"]`},
		"",
		"2 to be shown, since ",
	},
	{
		"how much does a column lose",
		[]string{`//a[.="public.patients"]`},
		"",
		"birth_datedatequasi identifier",
	},
	{
		"what has the last version changed, with which effect",
		[]string{`//a[.="public.patients"]`, `//button[.="Compare"]`},
		"", "k: 5 → 6",
	},
	{
		"why was a reader refused",
		[]string{`//main//a[.="refused"]`, `//tbody//a[starts-with(@href, "#query?")]`},
		"", "42501",
	},
	{
		"which ways were compared for an answer",
		[]string{
			`//main//a[.="released"]`,
			`//tr[contains(., "race, birth_date")]//a[starts-with(@href, "#query?")]`,
			`//*[local-name()="g" and @role="button"]`,
		},
		"", "risk before",
	},
	{
		"what has a reader asked",
		[]string{`//main//td/a[.="researcher"]`},
		"",
		"SELECT ward, avg(cost) FROM visits",
	},
	{
		"what do tools ask",
		[]string{`//nav/a[.="Statements"]`, `//a[@id="catalog" and starts-with(@href, "#queries")]`},
		"",
		"pg_catalog.pg_class",
	},
	{
		"find a statement by its words",
		[]string{`//nav/a[.="Statements"]`, `//button[.="Search"]`},
		"visits avg", "avg(cost)",
	},
	{
		"what does a hierarchy show of a date",
		[]string{`//a[.="public.patients"]`, `//summary[.="Tree of day"]`},
		"", "each year",
	},
	{
		"how far off are answers, and where",
		[]string{`//a[.="public.patients"]`},
		"", "90 % are off by at most2.1 %",
	},
	{
		"what would a policy of another table lose",
		[]string{`//nav/a[.="Policies"]`, `//a[.="Draft a policy"]`, `//button[.="Measure"]`},
		"", "public.numbers",
	},
	{"is the installation sound", []string{`//nav/a[.="Doctor"]`}, "", "serious findings"},
}

// TestConsoleAnswersAStewardInThreeClicks does each task with the mouse.
func TestConsoleAnswersAStewardInThreeClicks(t *testing.T) {
	ctx, _ := stewardStand(t)
	look(t, ctx, emulation.SetDeviceMetricsOverride(1440, 900, 1, false))
	for _, task := range stewardTasks {
		if len(task.clicks) > 3 {
			t.Errorf("%s takes %d clicks", task.task, len(task.clicks))
		}
		look(t, ctx, at("#overview", "Overview"))
		for i, what := range task.clicks {
			if task.typed != "" && i == len(task.clicks)-1 {
				look(t, ctx, chromedp.WaitVisible("#q"), chromedp.Focus("#q"),
					chromedp.KeyEvent(task.typed))
			}
			look(t, ctx, chromedp.Click(what, chromedp.BySearch, chromedp.NodeVisible))
		}
		wait, cancel := context.WithTimeout(ctx, 20*time.Second)
		err := chromedp.Run(wait, until(fmt.Sprintf(
			`document.querySelector('main').innerText !== '' &&
			document.querySelector('main').textContent.includes(%q)`, task.shows)))
		cancel()
		if err != nil {
			picture(t, ctx, "failed-task")
			var shown string
			look(t, ctx, chromedp.Evaluate(`document.querySelector('main').textContent`, &shown))
			t.Errorf("%s: %q is not shown in %.1500s", task.task, task.shows, shown)
		}
	}
}

func TestConsoleFoldsWhatToolsAsk(t *testing.T) {
	soakOnly(t)
	ctx, _ := stewardStand(t)
	var folded, whole, first []string
	rows := `[...document.querySelectorAll('td.sql')].map((c) => c.textContent)`
	look(t, ctx, at("#queries", "Statements"), chromedp.Evaluate(rows, &folded),
		chromedp.Click("#catalog"), until(`location.hash.includes('catalog=1')`),
		until(`document.querySelector('#catalog').textContent === 'hide catalog queries'`),
		chromedp.Evaluate(rows, &whole))
	tools := func(list []string) (n int) {
		for _, sql := range list {
			if strings.Contains(sql, "pg_catalog.pg_class") {
				n++
			}
		}
		return n
	}
	if tools(folded) != 0 || tools(whole) < 6 {
		t.Errorf("%d statements of tools are shown, %d of all", tools(folded), tools(whole))
	}
	if !slices.Contains(folded, "SELECT count(*) FROM numbers") {
		t.Errorf("what a reader asked is folded away: %q", folded)
	}
	look(t, ctx, at("#overview", "Overview"), chromedp.Evaluate(
		`[document.querySelector('#sum-passed').textContent,
		document.querySelector('#catalog').textContent]`, &first))
	left := len(whole) - len(folded)
	if first[0] != "1" || first[1] != fmt.Sprintf("show catalog queries (%d)", left) {
		t.Errorf("the first page says %q; %d are folded", first, left)
	}
	var axis []float64
	look(t, ctx, chromedp.Evaluate(`import('./charts.js').then((charts) => [...charts.verdictChart(
		[{ time: 0, released: 5, passed: 0, refused: 0, failed: 0 }])[0].querySelectorAll(
		'text[text-anchor=end]')].map((mark) => Number(mark.textContent)))`, &axis,
		awaited))
	if want := []float64{0, 3, 6}; !slices.Equal(axis, want) {
		t.Errorf("the lines of a chart of five statements are marked %v", axis)
	}
}

func TestConsoleSearchIsInItsLink(t *testing.T) {
	ctx, url := stewardStand(t)
	var link string
	var found, again []string
	rows := `[...document.querySelectorAll('tbody tr')].map((r) => r.textContent)`
	look(t, ctx, at("#queries", "Statements"), chromedp.Focus("#q"),
		chromedp.KeyEvent("RACE patients released\r"),
		until(`location.hash.includes('q=RACE') && document.querySelector('tbody') &&
			[...document.querySelectorAll('td.sql')].every((c) => c.textContent.includes('race'))`),
		chromedp.Evaluate(`location.href`, &link), chromedp.Evaluate(rows, &found))
	look(t, ctx, chromedp.Navigate("about:blank"), chromedp.Navigate(link),
		until(`document.querySelector('tbody')`), chromedp.Evaluate(rows, &again))
	if len(found) == 0 || !slices.Equal(found, again) {
		t.Errorf("%s shows %q, the search %q", link, again, found)
	}
	var typed string
	look(t, ctx, chromedp.Value("#q", &typed))
	if typed != "RACE patients released" || !strings.HasPrefix(link, url) {
		t.Errorf("%q stands in the field of %s", typed, link)
	}
	look(t, ctx, at("#queries?q=nobody-asked-this", "Statements"),
		until(`document.querySelector('main').textContent.includes('No statement is so.')`))
}

func TestConsoleShowsTimesInTheReadersZone(t *testing.T) {
	soakOnly(t)
	ctx, url := stewardStand(t)
	var said []string
	look(t, ctx, emulation.SetTimezoneOverride("Asia/Kathmandu"),
		chromedp.Navigate("about:blank"), chromedp.Navigate(url+"#queries"),
		until(`document.querySelector('tbody time')`),
		chromedp.Evaluate(`((t) => [t.dateTime, t.title, t.textContent,
			new Date(t.dateTime).toLocaleString([], {timeZone: 'Asia/Kathmandu'}),
			document.querySelector('#zone').textContent])(document.querySelector('tbody time'))`,
			&said))
	exact := strings.NewReplacer("T", " ", "Z", " UTC").Replace(said[0])
	if said[2] != said[3] || said[1] != exact {
		t.Errorf("%q is shown as %q, want %q, with the title %q", said[0], said[2], said[3], said[1])
	}
	if !strings.Contains(said[4], "mandu (UTC+5:45)") {
		t.Errorf("the page says of times: %s", said[4])
	}
}

// emptyStand has a database with nothing protected, whose owner is signed in to the console.
func emptyStand(t *testing.T, name string) (context.Context, *testCluster) {
	t.Helper()
	ctx := chromium(t)
	s, err := newStand(filepath.Join(stands, name))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.cluster.Stop)
	mustExec(t, s.superuser(t), "CREATE DATABASE empty OWNER dba")
	if err := s.install(t.Context(), "empty"); err != nil {
		t.Fatal(err)
	}
	port, err := freePort()
	if err != nil {
		t.Fatal(err)
	}
	address := fmt.Sprintf("127.0.0.1:%d", port)
	s.serve(t, "--console", address, "--service-dsn", s.cluster.ServiceDSN("empty"))
	look(t, ctx, chromedp.Navigate("http://"+address+"/"), chromedp.WaitVisible("#password"),
		chromedp.SetValue("#user", "dba"), chromedp.SetValue("#password", "dba"),
		chromedp.Focus("#password"), chromedp.KeyEvent("\r"), says("tailor policy init"))
	return ctx, s
}

// says waits for a text on the page.
func says(text string) chromedp.Action {
	return until(fmt.Sprintf(`document.querySelector('main').textContent.includes(%q)`, text))
}

func TestConsoleSaysWhatToDoFirst(t *testing.T) {
	ctx, _ := emptyStand(t, "first")
	accessible(t, ctx, "the first page of nothing")
	picture(t, ctx, "page-nothing-overview")
	for _, p := range [][3]string{
		{"#tables", "Tables", "Begin here"},
		{"#queries", "Statements", "Nobody has asked anything yet"},
		{"#chains", "Chains", "There are none yet"},
		{"#policies", "Policies", "No policy is in force"},
		{"#epochs", "Epochs", "none"},
		{"#table?name=public.x", "Not found", "no protected table"},
	} {
		look(t, ctx, at(p[0], p[1]), says(p[2]))
		accessible(t, ctx, p[0]+" of nothing")
		picture(t, ctx, "page-nothing-"+strings.ToLower(strings.ReplaceAll(p[1], " ", "-")))
	}
}
