package tests

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// A clinic of which some is the administrator's, some is not, and some the proxy may not read.
const undraftedClinic = `
CREATE TABLE public.people AS SELECT n AS id, 'name ' || n AS name, 20 + n % 60 AS age,
	(ARRAY['f', 'm'])[1 + n % 2] AS sex, (ARRAY['asthma', 'flu', 'gout'])[1 + n % 3] AS diagnosis
	FROM generate_series(1, 600) n;
ALTER TABLE public.people ADD PRIMARY KEY (id);
CREATE TABLE public.codes AS SELECT 1 + n % 500 AS person, (240 + n % 40) || '.' || n % 7 AS icd
	FROM generate_series(1, 1500) n;
ALTER TABLE public.codes ADD FOREIGN KEY (person) REFERENCES public.people;
CREATE TABLE public.closed AS SELECT n AS id, n % 7 AS age FROM generate_series(1, 99) n;
CREATE TABLE public.salaries AS SELECT n AS id, n % 7 AS age FROM generate_series(1, 99) n;
ALTER TABLE public.people OWNER TO dba; ALTER TABLE public.codes OWNER TO dba;
ALTER TABLE public.closed OWNER TO dba;
GRANT SELECT ON public.people, public.codes, public.salaries TO tailor_owner;
CREATE ROLE auditor LOGIN PASSWORD 'auditor'; GRANT tailor_admin TO auditor;`

// TestConsoleDraftsAPolicy answers otherwise than is suggested, takes another setting, and gives
// what comes of it to policy plan.
func TestConsoleDraftsAPolicy(t *testing.T) {
	ctx, s := emptyStand(t, "draft")
	mustExec(t, connect(t, s.cluster.SuperuserDSN("empty")), undraftedClinic)

	made := until(`document.querySelector('#policy') && !document.querySelector('[role=alert]')`)
	file := func() (text string) {
		look(t, ctx, made,
			chromedp.Evaluate(`document.querySelector('#policy').textContent`, &text))
		return text
	}
	class := func(column string) (letter string) {
		look(t, ctx, chromedp.Evaluate(fmt.Sprintf(
			`document.querySelector("[aria-label='Class of %s']").value`, column), &letter))
		return letter
	}
	choose := func(label, value string) chromedp.Action {
		return chromedp.Evaluate(fmt.Sprintf(`((s) => { s.value = %q; s.dispatchEvent(
			new Event('change')); })(document.querySelector('[aria-label="%s"]'))`, value, label), nil)
	}
	look(t, ctx, at("#draft", "Draft a policy"), chromedp.WaitVisible("#schema"),
		chromedp.Click(`//button[.="Measure"]`, chromedp.BySearch))
	first := file()
	for column, letter := range map[string]string{
		"name": "h", "age": "q", "sex": "q", "diagnosis": "s", "icd": "c",
	} {
		if got := class(column); got != letter {
			t.Errorf("%s is suggested as %q, not %q", column, got, letter)
		}
	}
	look(t, ctx, says("public.salaries: dba may not read it"),
		says("public.closed: tailor_owner may not read it; GRANT SELECT ON closed TO tailor_owner"))
	accessible(t, ctx, "a draft")
	var chosen string
	look(t, ctx, chromedp.Evaluate(`import('/csv.js').then((m) => [...document.querySelectorAll(
		'td:has(select), td:has(input)')].map(m.plain).join(' '))`, &chosen, awaited))
	if chosen != "hide quasi-identifier quasi-identifier sensitive codes no yes no" {
		t.Errorf("a file says that %q are chosen", chosen)
	}
	for _, width := range []int64{390, 1440} {
		var wide int64
		look(t, ctx, emulation.SetDeviceMetricsOverride(width, 900, 1, width < 400),
			chromedp.Evaluate(`document.documentElement.scrollWidth`, &wide))
		if wide > width {
			t.Errorf("a draft is %d wide on %d", wide, width)
		}
		picture(t, ctx, fmt.Sprintf("page-drafted-%d-light", width))
	}

	look(t, ctx, choose("Class of sex", "k"),
		until(`document.querySelector('#policy')?.textContent.includes('as answered')`))
	second := file()
	if second == first || !strings.Contains(second, "as answered; suggested was quasi-identifier") {
		t.Errorf("the answer changes nothing:\n%s", second)
	}
	look(t, ctx, choose("Subject of public.codes", "x"), says("Left out: as answered"),
		made,
		chromedp.Click(`[aria-label="k = 11, l = 4"]`),
		until(`location.hash.includes('setting=3')`),
		until(`document.querySelector('#policy')?.textContent.includes('k: 11')`))
	last := file()
	if strings.Contains(last, "name: public.codes") || !strings.Contains(last, "as answered") {
		t.Errorf("answers are forgotten:\n%s", last)
	}
	policy := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(policy, []byte(last), 0o600); err != nil {
		t.Fatal(err)
	}
	_, said, code := tailor(t, "policy", "plan", "--dsn", s.cluster.SuperuserDSN("empty"), policy)
	if code != 0 {
		t.Errorf("policy plan: exit code %d\n%s", code, said)
	}
	if n := one[int](t, connect(t, s.cluster.SuperuserDSN("empty")),
		`SELECT count(*) FROM tailor.policies`); n != 0 {
		t.Errorf("a draft leaves %d policies", n)
	}
}

// TestConsoleDraftsNothingOfOthers signs in as an administrator without rights on the tables.
func TestConsoleDraftsNothingOfOthers(t *testing.T) {
	ctx, s := emptyStand(t, "draft-others")
	mustExec(t, connect(t, s.cluster.SuperuserDSN("empty")), undraftedClinic)
	signInAs(t, ctx, "auditor")
	look(t, ctx, at("#draft?schema=public", "Draft a policy"), says("No table is left to protect"),
		says("public.people: auditor may not read it"))
	var shown string
	look(t, ctx, chromedp.Evaluate(`document.querySelector('main').textContent`, &shown))
	for _, value := range []string{"asthma", "rows", "240."} {
		if strings.Contains(shown, value) {
			t.Errorf("%q is shown of tables of others:\n%s", value, shown)
		}
	}
	look(t, ctx, at("#draft?schema=nowhere", "Draft a policy"), says("there is no schema"))
	look(t, ctx, at("#draft?schema=public&k=1", "Draft a policy"), says("k is a number from 2"))
}

// signInAs signs out and in again as another role, whose password is its name.
func signInAs(t *testing.T, ctx context.Context, role string) {
	t.Helper()
	look(t, ctx, chromedp.Click("#signout"), chromedp.WaitVisible("#password"),
		chromedp.SetValue("#user", role), chromedp.SetValue("#password", role),
		chromedp.Focus("#password"), chromedp.KeyEvent("\r"),
		until(fmt.Sprintf(`document.querySelector('#principal').textContent === %q`, role)),
		until(`document.querySelector('h1')?.textContent === 'Overview'`))
}
