package catalog

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// renew stores the release in tables of their own, with the rows of those that there
// are: under another policy than it was stored by, or where its tables have no room for
// a label. What was shown stays as it is. A column that has not been shown is shown to
// blocks whose rows the copy all has: else it would set those apart who are gone.
func (t *takingIn) renew(ctx context.Context, was *Relation) error {
	from, gone, past := t.chain.table("row"), t.chain.table("gone"), t.chain.table("past")
	t.chain.edition = max(t.chain.edition, t.chain.generation) + 1
	for _, d := range t.dictionaries {
		d.stored = 0
	}
	if err := createTables(ctx, t.tx, t.r, t.chain, t.dictionaries); err != nil {
		return err
	}
	if err := storeEntries(ctx, t.tx, t.chain, t.dictionaries); err != nil {
		return err
	}
	return execute(ctx, t.tx, t.renewal(was, from),
		fmt.Sprintf("ALTER TABLE IF EXISTS %s_touched RENAME TO %s_row_touched", from, t.chain.name()),
		fmt.Sprintf("INSERT INTO %s SELECT * FROM %s", t.chain.table("gone"), gone),
		t.remember(was, past),
		"ANALYZE "+t.chain.table("row"))
}

// remember is the statement that copies what was shown before, of columns that are there
// still: one that was dropped and added again has another number.
func (t *takingIn) remember(was *Relation, from string) string {
	numbers := []string{"(0, 0)"}
	for _, name := range t.followed() {
		if stays(was, name) {
			numbers = append(numbers, fmt.Sprintf("(%d, %d)", was.stored(name).Number,
				t.r.stored(name).Number))
		}
	}
	return fmt.Sprintf("INSERT INTO %s SELECT p.%s, p.%s, n.present, p.hash, p.epoch FROM %s p "+
		"JOIN (VALUES %s) n (earlier, present) ON p.number = n.earlier",
		t.chain.table("past"), personColumn, nthColumn, from, commas(numbers))
}

// renewal is the statement that copies rows. Rows of the copy are found by what both
// policies show of them, since the hashes of the copy are of what the present one shows.
func (t *takingIn) renewal(was *Relation, from string) string {
	stored := append(t.r.rowColumns(), shownColumns(t.dictionaries)...)
	now, then := t.carried(was)
	into := fmt.Sprintf("INSERT INTO %s (%s)", t.chain.table("row"),
		commas(append(slices.Clone(stored), now...)))
	if was == t.r { // all is shown as it was, and hashes are of the same
		return fmt.Sprintf("%s SELECT %s FROM %s ORDER BY gen_random_uuid()",
			into, commas(append(stored, then...)), from)
	}
	var mine, theirs, blank []string
	fresh := false
	for _, name := range t.r.payload() {
		switch {
		case !stays(was, name):
			fresh = true
		case name == t.pseudonym():
		case slices.Contains(t.withholdable, name): // it is shown as NULL, whatever the copy has
			mine = append(mine, "r."+name)
			theirs = append(theirs, fmt.Sprintf("CASE WHEN NOT r.%s THEN e.%s END", blankColumn(name), name))
			blank = append(blank, fmt.Sprintf("bool_and(%s IS NULL) OVER (PARTITION BY %s) AS %s", name,
				classColumn, blankColumn(name)))
		default:
			mine, theirs = append(mine, "r."+name), append(theirs, "e."+name)
		}
	}
	alike := func(list []string) string {
		return fmt.Sprintf(`ROW(%s)::text COLLATE "C"`, commas(list))
	}
	r, e := from+" r", fmt.Sprintf("tailor_store.epoch_%d e", t.r.Epoch)
	if len(blank) > 0 {
		r = fmt.Sprintf("(SELECT *, %s FROM %s) r", commas(blank), r)
	}
	changed := fmt.Sprintf("%s IS DISTINCT FROM %s", alike(mine), alike(theirs))
	whole := fmt.Sprintf("bool_and(e.%s IS NOT NULL AND NOT (%s)) OVER (PARTITION BY r.%s)",
		personColumn, changed, blockColumn)
	differs := changed
	if fresh { // rows that lack what is new are shown it with a change, when rule 4 allows that
		differs += " OR NOT " + whole
	}
	key := fmt.Sprintf(
		`CASE WHEN e.%[1]s IS NULL THEN r.%[2]s ELSE (CASE WHEN %[3]s THEN ~e.%[2]s
			ELSE e.%[2]s END & ~4294967295) | (r.%[2]s & 4294967295) END`,
		personColumn, keyColumn, differs)
	nth, match := "r."+nthColumn, t.same("e", "r")
	if !t.keyed {
		place := fmt.Sprintf(
			`row_number() OVER (PARTITION BY %[1]s, %%s, %[2]s & 4294967295
				ORDER BY %[2]s, %[3]s) AS "tailor place"`, personColumn, keyColumn, nthColumn)
		r = fmt.Sprintf("(SELECT *, %s FROM %s) r", fmt.Sprintf(place, alike(mine)), r)
		e = fmt.Sprintf("(SELECT *, %s FROM %s) e", fmt.Sprintf(place, alike(theirs)), e)
		match = fmt.Sprintf(
			`e.%[1]s = r.%[1]s AND %[2]s = %[3]s
				AND e.%[4]s & 4294967295 = r.%[4]s & 4294967295
				AND e."tailor place" = r."tailor place"`,
			personColumn, alike(theirs), alike(mine), keyColumn)
		key, nth = fmt.Sprintf("coalesce(e.%[1]s, r.%[1]s)", keyColumn),
			fmt.Sprintf("coalesce(e.%[1]s, r.%[1]s)", nthColumn)
	}
	list := []string{"r." + personColumn, key, nth, "r." + blockColumn, "r." + classColumn}
	if t.r.Parent != nil {
		list = append(list, "r."+rowColumn)
	}
	for _, name := range t.r.payload() {
		value := "r." + name
		if !stays(was, name) {
			value = fmt.Sprintf("CASE WHEN %s THEN e.%s END", whole, name)
		} else if now := t.r.stored(name); now.Type != was.stored(name).Type {
			value = fmt.Sprintf("(%s)::%s", value, now.Type)
		}
		list = append(list, value)
	}
	for _, name := range shownColumns(t.dictionaries) {
		list = append(list, "r."+name)
	}
	for _, name := range then {
		list = append(list, "r."+name)
	}
	return fmt.Sprintf("%s SELECT %s FROM %s LEFT JOIN %s ON %s ORDER BY gen_random_uuid()",
		into, commas(list), r, e, match)
}

// blankColumn says of a row whether all of its class show nothing in a column of the payload.
func blankColumn(name string) string {
	return ident("tailor blank " + strings.Trim(name, `"`))
}

// stays says whether a column of the payload, by its quoted name, was shown by an
// earlier policy, be it with a narrower type.
func stays(was *Relation, name string) bool {
	then := was.stored(name)
	return then != nil && then.Visible() && then.Class != QuasiIdentifier
}
