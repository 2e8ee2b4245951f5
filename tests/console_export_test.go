package tests

import (
	"context"
	"encoding/csv"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	downloads "github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// TestConsoleExportsTables: times are in UTC, figures whole, and no cell is a formula.
func TestConsoleExportsTables(t *testing.T) {
	ctx, _ := stewardStand(t)
	folder := t.TempDir()
	look(t, ctx, chromedp.ActionFunc(func(ctx context.Context) error {
		return downloads.SetDownloadBehavior(downloads.SetDownloadBehaviorBehaviorAllow).
			WithDownloadPath(folder).Do(ctx)
	}))
	export := func(caption string) [][]string {
		t.Helper()
		look(t, ctx, chromedp.Click(
			fmt.Sprintf(`button[aria-label="Download as CSV: %s"]`, caption)))
		var files []string
		waitFor(t, func() bool {
			files, _ = filepath.Glob(filepath.Join(folder, "*.csv"))
			return len(files) == 1
		})
		text, err := os.ReadFile(files[0])
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(files[0]); err != nil {
			t.Fatal(err)
		}
		unmarked, marked := strings.CutPrefix(string(text), "\ufeff")
		records, err := csv.NewReader(strings.NewReader(unmarked)).ReadAll()
		if err != nil || !marked || len(records) < 2 || !strings.Contains(unmarked, "\r\n") {
			t.Fatalf("%s: %v: %q", caption, err, text)
		}
		return records
	}
	column := func(records [][]string, name string) (out []string) {
		i := slices.Index(records[0], name)
		if i < 0 {
			t.Fatalf("there is no column %s: %q", name, records[0])
		}
		for _, record := range records[1:] {
			out = append(out, record[i])
		}
		return out
	}
	look(t, ctx, at("#table?name=public.patients", "public.patients"))
	readers := export("Readers, and what they asked of it in the last 30 days")
	roles := column(readers, "role")
	if !slices.Contains(roles, "'=1+1") || !slices.Contains(roles, "researcher") {
		t.Errorf("the roles are %q", roles)
	}
	for _, last := range column(readers, "last") {
		if last == "never" {
			continue
		}
		if at, err := time.Parse("2006-01-02T15:04:05.000Z", last); err != nil ||
			time.Since(at).Abs() > time.Hour {
			t.Errorf("a time is %q: %v", last, err)
		}
	}
	exact := column(export("Columns of public.patients, version 2"), "share exact")
	var whole bool
	for _, share := range exact {
		whole = whole || len(share) > len("0.1234") && strings.HasPrefix(share, "0.")
		if strings.ContainsAny(share, "%–") {
			t.Errorf("a share is %q", share)
		}
	}
	if !whole || len(exact) != 12 {
		t.Errorf("shares are %q", exact)
	}
	// The same module, given what no demo has.
	var fields []string
	look(t, ctx, chromedp.Evaluate(`import('/csv.js').then((m) => ['=1', '+1', '-1', '@x', ' =1',
		'\t=1', '\r=1', '＝1', 'a,b', 'a"b', 'a\nb', '–', 'plain', "it's"].map(m.field))`, &fields,
		awaited))
	want := []string{
		`"'=1"`, `"'+1"`, `"'-1"`, `"'@x"`, `"' =1"`, "\"'\t=1\"", "\"'\r=1\"", `"'＝1"`,
		`"a,b"`, `"a""b"`, "\"a\nb\"", "", "plain", `"it's"`,
	}
	if !slices.Equal(fields, want) {
		t.Errorf("fields are %q, want %q", fields, want)
	}
}

// TestConsolePrintsInBlackOnWhite, whatever the scheme, without what can only be clicked.
func TestConsolePrintsInBlackOnWhite(t *testing.T) {
	soakOnly(t)
	ctx, _ := stewardStand(t)
	var ground string
	var shown []string
	var pdf []byte
	look(t, ctx, at("#table?name=public.patients&from=1&to=2", "public.patients"),
		emulation.SetEmulatedMedia().WithMedia("print").WithFeatures(
			[]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "dark"}}),
		chromedp.Evaluate(`getComputedStyle(document.documentElement).backgroundColor`, &ground),
		chromedp.Evaluate(`['#header', 'form', 'button.csv', 'table', 'svg']
			.filter((q) => document.querySelector(q).checkVisibility())`, &shown),
		chromedp.ActionFunc(func(ctx context.Context) (err error) {
			pdf, _, err = page.PrintToPDF().Do(ctx)
			return err
		}))
	picture(t, ctx, "printed")
	if ground != "rgb(255, 255, 255)" || !slices.Equal(shown, []string{"table", "svg"}) {
		t.Errorf("the ground is %s, and %q are printed", ground, shown)
	}
	if len(pdf) < 10_000 {
		t.Errorf("the PDF has %d bytes", len(pdf))
	}
	err := os.WriteFile(filepath.Join(screenshots(t), "printed.pdf"), pdf, 0o644)
	if err != nil {
		t.Fatal(err)
	}
}
