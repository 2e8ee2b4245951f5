package audit

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v5"
)

// queries start the statements whose numbers the parser's normalization has replaced: those
// that it leaves are positions of columns and sizes of types. Numbers of FETCH are counts.
var queries = map[string]bool{
	"select": true, "with": true, "insert": true, "update": true, "delete": true, "merge": true,
	"values": true, "table": true, "(": true, "fetch": true, "move": true,
}

var errUnicode = errors.New("a literal with Unicode escapes")

// withoutRest replaces the literals that the parser's normalization leaves: it does not look
// into statements like CALL, PREPARE, EXECUTE and CREATE TABLE AS. Comments are emptied: what
// is commented out may be a literal.
func withoutRest(normal string) (string, error) {
	scanned, err := pg.Scan(normal)
	if err != nil {
		return "", fmt.Errorf("scan: %w", err)
	}
	given := 0
	for _, t := range scanned.Tokens {
		if t.Token == pg.Token_PARAM {
			n, _ := strconv.Atoi(normal[t.Start+1 : t.End])
			given = max(given, n)
		}
	}
	var out strings.Builder
	written, first, query := 0, true, false
	for _, t := range scanned.Tokens {
		replace := false
		switch t.Token {
		case pg.Token_SQL_COMMENT, pg.Token_C_COMMENT:
			out.WriteString(normal[written:t.Start] + "/**/")
			written = int(t.End)
			continue
		case pg.Token_ASCII_59: // a semicolon
			first = true
			continue
		case pg.Token_USCONST: // the scanner does not say where it ends
			return "", errUnicode
		case pg.Token_SCONST, pg.Token_BCONST, pg.Token_XCONST, pg.Token_FCONST:
			replace = true
		case pg.Token_ICONST:
			replace = !query
		}
		if first {
			first, query = false, queries[strings.ToLower(normal[t.Start:t.End])]
		}
		if replace {
			given++
			fmt.Fprintf(&out, "%s$%d", normal[written:t.Start], given)
			written = int(t.End)
		}
	}
	if written == 0 {
		return normal, nil
	}
	return out.String() + normal[written:], nil
}
