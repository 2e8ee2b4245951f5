package tests

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// disclosed collects, for each person, everything that one audience has been
// shown of quasi-identifiers. The person is known by the token, which stands in
// for an attacker's perfect knowledge of payloads.
type disclosed map[string][]string

// answer reads a query whose first column is the token, and adds what its
// other columns show.
func (d disclosed) answer(t *testing.T, conn *pgx.Conn, sql string, args ...any) (people int) {
	t.Helper()
	rows, err := conn.Query(t.Context(), sql,
		append([]any{pgx.QueryExecModeSimpleProtocol}, args...)...)
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	defer rows.Close()
	for rows.Next() {
		people++
		raw := rows.RawValues()
		shown := make([]string, len(raw)-1)
		for i, v := range raw[1:] {
			shown[i] = string(v)
			if v == nil {
				shown[i] = "(null)"
			}
		}
		d[string(raw[0])] = append(d[string(raw[0])], strings.Join(shown, "|"))
	}
	if err := rows.Err(); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return people
}

// smallestClass is the size of the smallest set of people who have been shown
// with the same labels in every answer: a class of the common refinement.
func (d disclosed) smallestClass() int {
	classes := make(map[string]int)
	for _, shown := range d {
		classes[strings.Join(shown, " ; ")]++
	}
	return slices.Min(slices.Collect(maps.Values(classes)))
}

// assertTruthful looks the same people up directly and asserts that each label
// covers the person's value.
func assertTruthful(t *testing.T, direct *pgx.Conn, d disclosed, at, column int, name string) {
	t.Helper()
	rows, err := direct.Query(t.Context(), fmt.Sprintf(
		`SELECT token::text, coalesce(%s::text, '(null)') FROM patients`, name))
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	var token, value string
	_, err = pgx.ForEachRow(rows, []any{&token, &value}, func() error {
		shown, ok := d[token]
		if !ok {
			return nil
		}
		label := strings.Split(shown[at], "|")[column]
		if !covers(label, value) {
			t.Errorf("%s: a label does not cover the value behind it: %q for %q", name, label, value)
		}
		checked++
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if checked != patients {
		t.Errorf("%s: %d of %d people were shown", name, checked, patients)
	}
}

var bounds = regexp.MustCompile(`^(\d+)-(\d+)$`)

// covers knows the demo's label forms by their meaning, not by our code.
func covers(label, value string) bool {
	if label == "*" || label == value || strings.HasPrefix(value, label+"-") { // 1965, 1965-04
		return true
	}
	if m := bounds.FindStringSubmatch(label); m != nil {
		low, _ := strconv.Atoi(m[1])
		high, _ := strconv.Atoi(m[2])
		v, err := strconv.Atoi(value)
		return err == nil && low <= v && v <= high
	}
	if strings.HasSuffix(label, "*") { // 352**
		return len(label) == len(value) && strings.HasPrefix(value, strings.TrimRight(label, "*"))
	}
	if decade, ok := strings.CutSuffix(label, "0s"); ok { // 1960s
		return strings.HasPrefix(value, decade)
	}
	return false
}
