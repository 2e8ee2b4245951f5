package tests

import "testing"

// TestEraseSeveralFromCodes erases one person after the other from codes that are
// published, by themselves and together with a column of the parent: the publication
// that the first one takes along is there no more when the next is erased.
func TestEraseSeveralFromCodes(t *testing.T) {
	direct := makeDatabase(t, "erase_several", fenced)
	if err := shared.install(t.Context(), "erase_several"); err != nil {
		t.Fatal(err)
	}
	exec1(t, direct, fencedPolicy)
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
	for _, erase := range []string{
		`CALL tailor.erase('codes', '7')`, `CALL tailor.erase('codes', '8', 'at_once')`,
		`CALL tailor.erase('codes', '9')`, `CALL tailor.erase('people', '10')`,
		`CALL tailor.erase('people', '11')`, `CALL tailor.erase('drugs', '12', 'at_once')`,
	} {
		exec1(t, direct, erase)
	}
	exec1(t, direct, `CALL tailor.refresh('codes')`)
	published(codes, 300-5-1-1) // 7 has taken four others along
	// One joint publication is made of the same people, and no other beside it.
	refused(t, direct, "55000", `CALL tailor.refresh('drugs')`)
	exec1(t, direct, `CALL tailor.forget_chains('drugs')`)
	published(joint, 400-3)
	for _, erase := range []string{
		`CALL tailor.erase('codes', '13')`, `CALL tailor.erase('people', '13')`,
	} {
		exec1(t, direct, erase)
	}
}
