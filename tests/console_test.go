package tests

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/jackc/pgx/v5"
)

// screenshots is where the browser tests leave what they saw: the folder that TAILOR_SCREENSHOTS
// names, or one that goes with the test.
func screenshots(t *testing.T) string {
	folder := os.Getenv("TAILOR_SCREENSHOTS")
	if folder == "" {
		return t.TempDir()
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	return folder
}

// browser starts Debian's chromium without a window.
func browser(t *testing.T) context.Context {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("chromium is not installed; scripts/prepare installs it")
		}
		t.Skip("chromium is not installed; scripts/prepare installs it")
	}
	// Not t.TempDir: the browser's processes may still write there when the test has ended.
	profile, err := os.MkdirTemp(stands, "browser-")
	if err != nil {
		t.Fatal(err)
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path),
		chromedp.NoSandbox, chromedp.UserDataDir(profile), chromedp.WindowSize(1280, 900))
	allocator, stop := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(stop)
	ctx, cancel := chromedp.NewContext(allocator)
	t.Cleanup(cancel)
	ctx, cancel = context.WithTimeout(ctx, 6*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// look runs steps in the browser, and leaves a picture where they fail.
func look(t *testing.T, ctx context.Context, steps ...chromedp.Action) {
	t.Helper()
	if err := chromedp.Run(ctx, steps...); err != nil {
		picture(t, ctx, "failed-"+strings.ReplaceAll(t.Name(), "/", "-"))
		t.Fatal(err)
	}
}

func picture(t *testing.T, ctx context.Context, name string) {
	t.Helper()
	var png []byte
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	if err := chromedp.Run(ctx, chromedp.FullScreenshot(&png, 100)); err != nil {
		t.Logf("no picture: %v", err)
		return
	}
	if err := os.WriteFile(filepath.Join(screenshots(t), name+".png"), png, 0o644); err != nil {
		t.Fatal(err)
	}
}

// until waits for an expression of the page to be true.
func until(expression string) chromedp.Action {
	return chromedp.Poll(expression, nil, chromedp.WithPollingTimeout(30*time.Second),
		chromedp.WithPollingInterval(50*time.Millisecond))
}

// withConsole starts a proxy with a console and returns its address.
func (s *testCluster) withConsole(t *testing.T) (*testProxy, string) {
	t.Helper()
	port, err := freePort()
	if err != nil {
		t.Fatal(err)
	}
	address := fmt.Sprintf("127.0.0.1:%d", port)
	return s.serve(t, "--console", address), "http://" + address + "/"
}

// accessible runs axe-core over what is shown.
func accessible(t *testing.T, ctx context.Context, where string) {
	t.Helper()
	script, err := os.ReadFile("testdata/axe-core/axe.min.js")
	if err != nil {
		t.Fatal(err)
	}
	var found string
	look(t, ctx,
		chromedp.ActionFunc(func(ctx context.Context) error {
			_, fault, err := runtime.Evaluate(string(script)).Do(ctx)
			if fault != nil {
				return fault
			}
			return err
		}),
		chromedp.Evaluate(`axe.run(document, {resultTypes: ['violations']}).then((r) =>
			JSON.stringify(r.violations.map((v) => ({id: v.id, impact: v.impact, help: v.help,
				nodes: v.nodes.map((n) => n.html + ' ' + n.failureSummary).slice(0, 3)}))))`,
			&found, awaited))
	var violations []struct {
		ID, Impact, Help string
		Nodes            []string
	}
	if err := json.Unmarshal([]byte(found), &violations); err != nil {
		t.Fatal(err)
	}
	for _, v := range violations {
		t.Errorf("%s: %s (%s): %s\n%s", where, v.ID, v.Impact, v.Help, strings.Join(v.Nodes, "\n"))
	}
}

// awaited has the value of a promise.
func awaited(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }

// shownIn says whether an element of a kind is shown that holds a text.
func shownIn(selector, text string) string {
	return fmt.Sprintf(`[...document.querySelectorAll(%q)].some((c) => c.textContent.includes(%q))`,
		selector, text)
}

func TestConsoleShowsAStatementLiveWithItsGraph(t *testing.T) {
	ctx := browser(t)
	p, url := shared.withConsole(t)
	user := shared.reader(t)
	conn := connect(t, p.dsn(user))
	ask := func(sql string) {
		_, _ = conn.Exec(t.Context(), sql, pgx.QueryExecModeSimpleProtocol)
	}
	ask("SELECT age, zip, sex, diagnosis FROM patients")

	var complaints []string
	chromedp.ListenTarget(ctx, func(event any) {
		switch e := event.(type) {
		case *runtime.EventExceptionThrown:
			complaints = append(complaints, e.ExceptionDetails.Error())
		case *page.EventJavascriptDialogOpening:
			complaints = append(complaints, "a dialog: "+e.Message)
		}
	})
	look(t, ctx, chromedp.Navigate(url), chromedp.WaitVisible("#password"))
	accessible(t, ctx, "sign-in")
	// A reader is no administrator.
	signIn := func(role string) chromedp.Tasks {
		return chromedp.Tasks{
			chromedp.SetValue("#user", role), chromedp.SetValue("#password", role),
			chromedp.Focus("#password"), chromedp.KeyEvent("\r"),
		}
	}
	look(t, ctx, signIn(user), until(shownIn("[role=alert]", "tailor_admin")))
	look(t, ctx, signIn("dba"), until(`document.querySelector('#principal').textContent === 'dba'`),
		until(`Number(document.querySelector('#sum-released')?.textContent) > 0`))
	// The keyboard reaches the list: skip link, then the tabs.
	look(t, ctx, chromedp.Focus(`#tabs a[href="#queries"]`), chromedp.KeyEvent("\r"),
		until(`document.querySelector('h1')?.textContent === 'Statements'`))

	// A statement that is asked now comes to the list by itself.
	look(t, ctx, until(`document.querySelector('#live').textContent === 'live'`))
	ask("SELECT race, birth_date, count(*) FROM patients WHERE age > 40 GROUP BY race, birth_date")
	look(t, ctx, until(shownIn("td.sql", "race, birth_date")))
	ask(`SELECT '<img src=x onerror=alert(1)>' AS "<script>alert(1)</script>"
		FROM numbers WHERE n = 987654321`)
	look(t, ctx, until(shownIn("td.sql", "<script>")))
	var shown string
	look(t, ctx, chromedp.Evaluate(`document.body.textContent`, &shown))
	if strings.Contains(shown, "987654321") || strings.Contains(shown, "onerror") {
		t.Error("the page shows a literal")
	}

	// Filter: refused statements of the reader.
	ask("SELECT name FROM patients")
	look(t, ctx, chromedp.Click("#filter summary"),
		chromedp.SetValue("input[name=principal]", user), chromedp.SetValue("#verdict", "refused"),
		chromedp.Click("#filter button"),
		until(`document.querySelectorAll('tbody tr').length === 1
			&& document.querySelector('tbody').textContent.includes('42501')`))

	// The graph of the statement, with its candidates by keyboard.
	look(t, ctx, chromedp.Navigate(url+"#queries?verdict=released&principal="+user),
		until(shownIn("td.sql", "race, birth_date")),
		chromedp.Evaluate(`[...document.querySelectorAll('tbody tr')].find((r) =>
			r.textContent.includes('race, birth_date')).querySelector('a').click()`, nil),
		until(`document.querySelectorAll('svg .stage').length >= 3`),
		chromedp.Evaluate(`document.querySelector('.stage[role=button]').focus()`, nil),
		chromedp.KeyEvent(" "),
		until(`document.querySelector('#candidates h3') !== null`))

	for _, scheme := range []string{"light", "dark"} {
		look(t, ctx, emulation.SetEmulatedMedia().WithFeatures(
			[]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}))
		accessible(t, ctx, "statement in "+scheme)
		picture(t, ctx, "statement-"+scheme)
		visited := sections
		if scheme == "dark" && !soaks() {
			visited = sections[:1]
		}
		for _, section := range visited {
			look(t, ctx, chromedp.Evaluate(fmt.Sprintf("location.hash = '#%s'", section), nil),
				until(fmt.Sprintf(`document.querySelector('#tabs a[aria-current]')?.hash === '#%s'`, section)))
			accessible(t, ctx, section+" in "+scheme)
			picture(t, ctx, section+"-"+scheme)
		}
		look(t, ctx, chromedp.Evaluate("history.back()", nil))
		for range len(visited) - 1 {
			look(t, ctx, chromedp.Evaluate("history.back()", nil))
		}
		look(t, ctx, until(`document.querySelectorAll('svg .stage').length >= 3`))
		var ground string
		look(t, ctx, chromedp.Evaluate(
			`getComputedStyle(document.documentElement).backgroundColor`, &ground))
		grounds := map[string]string{"light": "rgb(255, 255, 255)", "dark": "rgb(20, 23, 27)"}
		if ground != grounds[scheme] {
			t.Errorf("%s: the ground is %s", scheme, ground)
		}
	}
	// What the sections say.
	for section, holds := range map[string]string{
		"chains": shownIn("dl.bars dt", "birth_date") +
			`&& document.querySelectorAll('meter').length > 0`,
		"epochs": `document.querySelector('pre')?.textContent.includes("CALL tailor.refresh('")
			&& [...document.querySelectorAll('td')].some((c) => /\d [KM]B$/.test(c.textContent))`,
		"doctor": `Number(document.querySelector('#count-warning')?.textContent) > 0
			&& ` + shownIn(".finding pre", "tailor.classify"),
		"policies": shownIn("ul.tree", "each year"),
	} {
		look(t, ctx, chromedp.Evaluate(fmt.Sprintf("location.hash = '#%s'", section), nil),
			until(fmt.Sprintf(`document.querySelector('#tabs a[aria-current]')?.hash === '#%s'`,
				section)), until(holds))
	}
	narrow(t, ctx)
	look(t, ctx, chromedp.Click("#signout"), chromedp.WaitVisible("#password"))
	if complaints != nil {
		t.Errorf("the page complains: %v", complaints)
	}
}

// sections are those of the console.
var sections = []string{
	"overview", "tables", "queries", "chains", "policies", "epochs", "doctor",
}

// narrow looks at each section on a telephone: nothing but what scrolls by
// itself is wider than the screen.
func narrow(t *testing.T, ctx context.Context) {
	t.Helper()
	look(t, ctx, emulation.SetDeviceMetricsOverride(360, 740, 1, true))
	for _, section := range sections {
		var wide int
		look(t, ctx, chromedp.Evaluate(fmt.Sprintf("location.hash = '#%s'", section), nil),
			until(fmt.Sprintf(`document.querySelector('#tabs a[aria-current]')?.hash === '#%s'`, section)),
			chromedp.Evaluate(`document.documentElement.scrollWidth`, &wide))
		if wide > 360 {
			t.Errorf("%s is %d wide on a screen of 360", section, wide)
		}
		picture(t, ctx, section+"-narrow")
	}
	look(t, ctx, emulation.ClearDeviceMetricsOverride())
}

// signIn signs in without a browser.
func signIn(t *testing.T, url, role, password string, change func(*http.Request)) *http.Response {
	t.Helper()
	body := fmt.Sprintf(`{"user": %q, "password": %q}`, role, password)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"api/login",
		strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	if change != nil {
		change(r)
	}
	return do(t, r)
}

func do(t *testing.T, r *http.Request) *http.Response {
	t.Helper()
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = response.Body.Close() })
	return response
}

func TestConsoleLetsInAdministratorsOnly(t *testing.T) {
	_, url := shared.withConsole(t)
	user := shared.reader(t)
	get := func(path string, cookies ...*http.Cookie) *http.Response {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range cookies {
			r.AddCookie(c)
		}
		return do(t, r)
	}
	for _, path := range []string{
		"session", "overview", "queries", "queries/x", "totals", "chains", "policies", "epochs",
		"findings", "live", "tables", "table?name=public.patients",
	} {
		if code := get("api/" + path).StatusCode; code != http.StatusUnauthorized {
			t.Errorf("%s without a session: %d", path, code)
		}
		guess := &http.Cookie{Name: "__Host-tailor", Value: "guess"}
		if code := get("api/"+path, guess).StatusCode; code != http.StatusUnauthorized {
			t.Errorf("%s with a guessed session: %d", path, code)
		}
	}
	first := get("")
	policy := first.Header.Get("Content-Security-Policy")
	for _, want := range []string{
		"default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "base-uri 'none'",
	} {
		if !strings.Contains(policy, want) {
			t.Errorf("the content security policy lacks %s: %s", want, policy)
		}
	}
	if strings.Contains(policy, "unsafe") || first.Header.Get("X-Frame-Options") != "DENY" {
		t.Errorf("%v", first.Header)
	}

	if code := signIn(t, url, user, user, nil).StatusCode; code != http.StatusUnauthorized {
		t.Errorf("a reader: %d", code)
	}
	foreign := func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") }
	if code := signIn(t, url, "dba", "dba", foreign).StatusCode; code != http.StatusForbidden {
		t.Errorf("a form of another site: %d", code)
	}
	in := signIn(t, url, "dba", "dba", nil)
	if in.StatusCode != http.StatusOK || len(in.Cookies()) != 1 {
		t.Fatalf("the administrator: %d, %v", in.StatusCode, in.Cookies())
	}
	cookie := in.Cookies()[0]
	if !cookie.Secure || !cookie.HttpOnly || cookie.SameSite != http.SameSiteStrictMode {
		t.Errorf("the cookie is %v", cookie)
	}
	if code := get("api/chains", cookie).StatusCode; code != http.StatusOK {
		t.Errorf("signed in: %d", code)
	}
	if code := get("api/queries?risk=NaN", cookie).StatusCode; code != http.StatusBadRequest {
		t.Errorf("a filter that is no number: %d", code)
	}
	// Without the page's token nothing changes.
	r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"api/logout",
		strings.NewReader("{}"))
	r.AddCookie(cookie)
	if code := do(t, r).StatusCode; code != http.StatusForbidden {
		t.Errorf("a change without the token: %d", code)
	}
	// Who is no longer a member is out at once.
	direct := shared.superuser(t)
	mustExec(t, direct, "CREATE ROLE passing LOGIN PASSWORD 'passing' IN ROLE tailor_admin")
	passing := signIn(t, url, "passing", "passing", nil)
	if passing.StatusCode != http.StatusOK {
		t.Fatal(passing.Status)
	}
	mustExec(t, direct, "REVOKE tailor_admin FROM passing")
	if code := get("api/session", passing.Cookies()[0]).StatusCode; code != http.StatusUnauthorized {
		t.Errorf("no longer a member: %d", code)
	}
	// Guessing is slowed down, also with the right password at last.
	last := 0
	for range 8 {
		last = signIn(t, url, "dba", "guess", nil).StatusCode
	}
	code := signIn(t, url, "dba", "dba", nil).StatusCode
	if last != http.StatusTooManyRequests || code != http.StatusTooManyRequests {
		t.Errorf("after many guesses: %d, then %d", last, code)
	}
}

func TestConsoleShowsNoProtectedValue(t *testing.T) {
	s, err := newStand(filepath.Join(stands, "quiet"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.cluster.Stop)
	direct := s.superuser(t)
	// A code list made from the protected column itself, and a log that keeps literals.
	mustExec(t, direct, `SET SESSION AUTHORIZATION dba;
		ALTER TABLE patients ADD nick text;
		UPDATE patients SET nick = 'canary' || (random() * 1e9)::int;
		CREATE VIEW nicks AS SELECT DISTINCT nick, nick AS same,
			'group' || substr(nick, 7, 1) AS wide FROM patients;
		CALL tailor.define_hierarchy('nick', 'table',
			'{"source": "public.nicks", "columns": ["nick", "same", "wide"]}');
		CALL tailor.classify('public.patients', 'nick', 'quasi_identifier', hierarchy => 'nick');
		CALL tailor.activate('public.patients'); RESET SESSION AUTHORIZATION`)
	port, err := freePort()
	if err != nil {
		t.Fatal(err)
	}
	p := s.serve(t, "--audit-sql", "full", "--console", fmt.Sprintf("127.0.0.1:%d", port))
	user := s.reader(t)
	conn := connect(t, p.dsn(user))
	for _, sql := range []string{
		"SELECT age FROM patients WHERE nick = 'canary1'", "SELECT nick FROM patients",
		"SELECT 'canary2' + 1", "SELEC 'canary3'",
	} {
		_, _ = conn.Exec(t.Context(), sql, pgx.QueryExecModeSimpleProtocol)
	}
	waitFor(t, func() bool {
		return one[int](t, direct, "SELECT count(*) FROM tailor.audit WHERE principal = $1", user) == 4
	})
	n := one[int](t, direct, "SELECT count(*) FROM tailor.audit WHERE sql LIKE '%canary%'")
	if n != 3 {
		t.Errorf("%d records keep their literals, want 3", n)
	}
	url := fmt.Sprintf("http://127.0.0.1:%d/", port)
	in := signIn(t, url, "dba", "dba", nil)
	ids := []string{
		"overview", "queries", "totals", "chains", "policies", "epochs", "findings", "tables",
		"table?name=public.patients", "table?name=public.patients&from=1&to=2",
	}
	rows, _ := direct.Query(t.Context(), "SELECT 'queries/' || id FROM tailor.audit")
	more, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range append(ids, more...) {
		r, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"api/"+path, nil)
		r.AddCookie(in.Cookies()[0])
		response := do(t, r)
		body := readAll(t, response)
		if response.StatusCode != http.StatusOK {
			t.Fatalf("%s: %d", path, response.StatusCode)
		}
		if at := strings.Index(body, "canary"); at >= 0 {
			t.Errorf("%s holds a value: %.80s", path, body[at:])
		}
		// Nobody finds out by searching which literals there were.
		if path == "queries" {
			search, _ := http.NewRequestWithContext(t.Context(), http.MethodGet,
				url+"api/queries?catalog=1&q=canary2", nil)
			search.AddCookie(in.Cookies()[0])
			if found := readAll(t, do(t, search)); strings.Contains(found, `"verdict"`) {
				t.Errorf("a search finds a literal: %.200s", found)
			}
		}
		if path == "policies" && !strings.Contains(body, "group7") {
			t.Error("the tree of the code list lacks its wide labels")
		}
	}
}

func readAll(t *testing.T, r *http.Response) string {
	t.Helper()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}
