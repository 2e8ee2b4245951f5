package audit_test

import (
	"strings"
	"testing"

	"github.com/hiatus-tailor/tailor/internal/audit"
)

// TestNoStatementKeepsALiteral has literals of the digits 4711 where statements may have them.
func TestNoStatementKeepsALiteral(t *testing.T) {
	for _, text := range []string{
		`CALL tailor.erase('patients', '4711')`,
		`CALL p(4711, x => E'4711', y => 47.11)`,
		`DO $x$ BEGIN PERFORM 4711; END $x$`,
		`PREPARE x AS SELECT * FROM t WHERE n = '4711' AND a > 4711`,
		`EXECUTE x('4711', 4711)`,
		`EXPLAIN EXECUTE x('4711', 4711)`,
		`DECLARE c CURSOR FOR SELECT * FROM t WHERE n = '4711' LIMIT 4711`,
		`CREATE TEMP TABLE x AS SELECT * FROM t WHERE n = '4711' OR a = 4711`,
		`SELECT * INTO TEMP x FROM t WHERE n = '4711' OR a = 4711`,
		`CREATE VIEW v AS SELECT * FROM t WHERE n = '4711' OR b = B'0' OR x = X'4711'`,
		`CREATE VIEW v AS SELECT * FROM t WHERE n = U&'4711'`,
		`COPY (SELECT * FROM t WHERE a = 4711) TO STDOUT`,
		`COPY t FROM PROGRAM '4711'`,
		`NOTIFY c, '4711'`,
		`COMMENT ON TABLE t IS $$4711$$`,
		`SECURITY LABEL FOR tailor ON COLUMN t.a IS '4711'`,
		`ALTER ROLE r PASSWORD '4711'`,
		`CREATE TABLE t (a int DEFAULT 4711 CHECK (a > 4711))`,
		`CREATE TYPE e AS ENUM ('4711')`,
		`SELECT 1; CALL p(4711); SELECT 4711`,
		`/* a comment */ CALL p(4711)`,
		"SELECT a FROM t -- WHERE n = 4711",
		"SELECT a -- 4711\nFROM t /* n = '4711' /* and 4711 */ */ WHERE b = 1",
	} {
		normal, readable := audit.WithoutLiterals(text)
		if readable == strings.Contains(text, "U&") || strings.Contains(normal, "47") {
			t.Errorf("%s: %s", text, normal)
		}
	}
}

func TestWhatIsNoLiteralStays(t *testing.T) {
	for text, want := range map[string]string{
		`SELECT a::numeric(10, 2) FROM t WHERE b = 5 ORDER BY 1`: `SELECT a::numeric(10, 2) FROM t ` +
			`WHERE b = $1 ORDER BY 1`,
		`FETCH 100 FROM c`:               `FETCH 100 FROM c`,
		`CALL p(1, 'a')`:                 `CALL p($1, $2)`,
		`SELECT 1 WHERE $2; CALL p('a')`: `SELECT $3 WHERE $2; CALL p($4)`,
		`BEGIN`:                          `BEGIN`,
		"SELECT a-- b\nFROM t":           "SELECT a/**/\nFROM t",
	} {
		if normal, _ := audit.WithoutLiterals(text); normal != want {
			t.Errorf("%s: %s, want %s", text, normal, want)
		}
	}
}
