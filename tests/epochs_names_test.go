package tests

import "testing"

// TestEpochsOfColumnsOfAnyName has columns with names that the statements which bring a
// release up to date could take for their own.
func TestEpochsOfColumnsOfAnyName(t *testing.T) {
	direct := makeDatabase(t, "epochs_names",
		`CREATE TABLE odd (id int PRIMARY KEY, age int, block text, class int, cohort int,
			leaves boolean, epoch int, number int, hash text,
			changes_0 int, person int, e int, r int, becomes int, "Odd "" Name" text);
		INSERT INTO odd SELECT n, n % 90, 'b' || n, n, n, n % 2 = 0, n, n, 'h' || n, n, n, n, n, n,
			'o' || n FROM generate_series(1, 300) n`)
	if err := shared.install(t.Context(), "epochs_names"); err != nil {
		t.Fatal(err)
	}
	mustExec(t, direct,
		`CALL tailor.define_hierarchy('n', 'interval', '{"widths": [10, 50], "lower": 0, "upper": 99}');
		CALL tailor.protect('odd', 'id', 5);
			CALL tailor.classify('odd', 'age', 'quasi_identifier', hierarchy => 'n');
		DO $$ DECLARE c name; BEGIN
			FOR c IN SELECT attname FROM pg_attribute WHERE attrelid = 'odd'::regclass
			AND attnum > 2 LOOP CALL tailor.classify('odd', c, 'sensitive'); END LOOP;
		END $$; CALL tailor.activate('odd')`)
	p := serveDatabase(t, "epochs_names")
	conn := connect(t, p.dsn("researcher"))
	mustExec(t, conn, "SELECT block FROM odd")
	refresh := func(change string) {
		t.Helper()
		mustExec(t, direct, change+"; CALL tailor.refresh('odd')")
		awaitTakenIn(t, direct, "odd", conn)
	}
	refresh(`UPDATE odd SET class = class + 1000, hash = 'new ' || hash, "Odd "" Name" = 'x'`)
	if n := one[int](t, conn,
		`SELECT count(*) FROM odd WHERE class > 1000 AND hash LIKE 'new %' AND "Odd "" Name" = 'x' `+
			`AND block LIKE 'b%'`); n != 300 {
		t.Errorf("%d of 300 rows are shown with what all have changed", n)
	}
	refresh(`DELETE FROM odd WHERE age < 50; ` +
		`INSERT INTO odd SELECT n, n % 90, 'c' || n, n, n, true, n, n, 'h', n, n, n, n, n, 'o' ` +
		`FROM generate_series(1001, 1200) n`)
	if n := one[int](t, conn, `SELECT count(*) FROM odd WHERE block LIKE 'c%'`); n != 200 {
		t.Errorf("%d of 200 newcomers are shown", n)
	}
	if n := one[int](t, conn, `SELECT count(*) FROM odd WHERE block LIKE 'b%'`); n > 200 {
		t.Errorf("%d rows are shown of 130 people who stay, and those who may not go yet", n)
	}
	mustExec(t, direct, `CALL tailor.protect('odd', 'id', 7); CALL tailor.activate('odd')`)
	awaitTakenIn(t, direct, "odd")
	if least := one[int](t, direct, `SELECT min_block FROM tailor.chain`); least < 7 {
		t.Errorf("a block of %d", least)
	}
}
