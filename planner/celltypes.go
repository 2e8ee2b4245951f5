package planner

import (
	"slices"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v5"
)

// isCaseless says whether a type is citext, an extension's, which without the
// operators of its own would be compared as text.
func isCaseless(t string) bool { return t == "citext" || strings.HasSuffix(t, ".citext") }

// isUnbounded says whether a type is numeric without a precision.
func isUnbounded(t string) bool { return t == "numeric" }

// wholeTypes have sums and squares that cannot overflow for any number of rows
// that a table can hold. Unbounded numeric does above 65,000 digits.
var wholeTypes = []string{"smallint", "integer", "bigint", "numeric"}

// summed says how an aggregate other than count takes a column of a type, so
// that it fails for no group that is not shown: by what cast its argument is
// widened and to what its result is cast back, "" for none.
func summed(aggregate, t string) (widened, back string, ok bool) {
	base, _, _ := strings.Cut(t, "(")
	switch {
	case slices.Contains(wholeTypes, base):
		return "", "", true
	case t == "real" && aggregate == "sum":
		return "::pg_catalog.float8", "::pg_catalog.float4", true
	case t == "real":
		return "", "", true // computed as float8, whose squares have room
	case t == "double precision":
		return "::pg_catalog.numeric", "::pg_catalog.float8", true
	}
	return "", "", false
}

// widen puts the cast of [summed] behind the argument of a call whose opening
// parenthesis is at an index, and returns that of its result.
func (b *binder) widen(f *pg.FuncCall, open int, o origin) (back string, err error) {
	name := last(f.Funcname)
	if name == "count" {
		return "", nil
	}
	widened, back, ok := summed(name, o.stored().Type)
	if !ok {
		return "", b.refuseCells(int(f.Location), "%s takes columns of integers, numeric, real and double precision", name)
	}
	if widened == "" {
		return "", nil
	}
	return back, b.insert(int(b.tokens[b.closing(open)-1].End), widened)
}
