package tests

import "testing"

// TestEraseSeveralFromCodes erases one person after the other from codes that are
// published, by themselves and together with a column of the parent: each takes the
// cluster along, which may have gone with somebody before.
func TestEraseSeveralFromCodes(t *testing.T) {
	direct := makeDatabase(t, "erase_several", fenced)
	if err := shared.install(t.Context(), "erase_several"); err != nil {
		t.Fatal(err)
	}
	mustExec(t, direct, fencedPolicy)
	reader := connect(t, serveDatabase(t, "erase_several").dsn("researcher"))
	published := func(sql string, want int) {
		t.Helper()
		answeredSoon(t, reader, sql)
		if n := again[int](t, reader, sql); n != want {
			t.Errorf("%s: %d, want %d", sql, n, want)
		}
	}
	const codes = "SELECT upper FROM tailor.case_count('codes', '{}')"
	const joint = "SELECT count(DISTINCT p.id) FROM people p JOIN drugs d ON d.person = p.id"
	published(codes, 300)
	published(joint, 400)
	left := map[string]int{codes: 300, joint: 400}
	for _, erase := range []struct{ call, of string }{
		{`CALL tailor.erase('codes', '7')`, codes},
		{
			`CALL tailor.erase('codes', '8', 'at_once')`,
			codes,
		},
		{`CALL tailor.erase('codes', '9')`, codes},
		{`CALL tailor.erase('people', '10')`, joint},
		{`CALL tailor.erase('people', '11')`, joint},
		{`CALL tailor.erase('drugs', '12',
			'at_once')`, joint},
	} {
		mustExec(t, direct, erase.call)
		n := one[int](t, direct, `SELECT subjects::int FROM tailor.chain
			WHERE relation = $1::text::regclass`, map[string]string{
			codes: "codes",
			joint: "drugs",
		}[erase.of])
		if gone := left[erase.of] - n; gone != 0 && (gone < 5 || gone > 9) {
			t.Errorf("%s takes %d people along, want a cluster", erase.call, gone)
		}
		left[erase.of] = n
		waitFor(t, func() bool { return again[int](t, reader, erase.of) == n })
	}
	if left[codes] == 300 || left[joint] == 400 {
		t.Errorf("%d and %d people are left", left[codes], left[joint])
	}
	for _, table := range []string{"codes", "drugs"} {
		mustExec(t, direct, `CALL tailor.refresh($1::text::regclass)`, table)
		awaitTakenIn(t, direct, table, reader)
	}
	published(codes, left[codes])
	published(joint, left[joint])
	mustExec(t, direct, `CALL tailor.forget_chains('drugs')`)
	waitFor(t, func() bool { return again[int](t, reader, joint) == 400-3 })
}
