package planner

import (
	"regexp"
	"slices"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v5"

	"github.com/hiatus-tailor/tailor/catalog"
)

// A data set is filled at another moment, and by a session with other parameters, than a
// client's subquery is asked. Both say the same only where neither matters. PostgreSQL calls
// such functions IMMUTABLE; of the texts and the types that it reads by DateStyle, IntervalStyle
// or TimeZone the parser knows nothing, so what is steady is listed.

// steadyFunctions depend on their arguments alone, whatever types with a time zone have been
// ruled out elsewhere.
var steadyFunctions = []string{
	"count", "sum", "avg", "min", "max", "bool_and", "bool_or", "every", "array_agg",
	"stddev", "stddev_pop", "stddev_samp", "variance", "var_pop", "var_samp",
	"percentile_cont", "percentile_disc", "mode",
	"row_number", "rank", "dense_rank", "lag", "lead", "first_value", "last_value", "nth_value",
	"abs", "ceil", "ceiling", "floor", "round", "trunc", "sign", "mod", "power", "sqrt",
	"width_bucket",
	"lower", "upper", "left", "right", "substring", "substr", "length", "char_length", "btrim",
	"ltrim", "rtrim", "replace", "split_part", "starts_with", "strpos", "position", "lpad", "rpad",
	"date_part", "extract", "date_trunc", "make_date",
	"cardinality", "array_length", "array_position",
}

// Types as the parser and the catalog call them.
var (
	numberTypes = []string{"int2", "int4", "int8", "numeric", "float4", "float8", "bool"}
	textTypes   = []string{"text", "varchar", "bpchar"}
	dayTypes    = []string{"date", "timestamp"}
	// asText are types whose values are written alike in every session.
	asText = []string{
		"text", "character varying", "character", "smallint", "integer", "bigint", "numeric",
		"boolean", "uuid",
	}
	asDay = []string{"date", "timestamp without time zone"}
)

var (
	isoDay = regexp.MustCompile(`^\d{4}-\d\d-\d\d([ T]\d\d:\d\d(:\d\d(\.\d+)?)?)?$`)
	// dayIn finds what PostgreSQL may read as a day: any signs part its numbers.
	dayIn    = regexp.MustCompile(`\d+[^0-9A-Za-z:]+\d+[^0-9A-Za-z:]+\d+`)
	momentIn = regexp.MustCompile(`(?i)(^|[^a-z])(now|today|tomorrow|yesterday)($|[^a-z])`)
	monthIn  = regexp.MustCompile(
		`(?i)(^|[^a-z])(jan(uary)?|feb(ruary)?|mar(ch)?|apr(il)?|may|june?|july?|` +
			`aug(ust)?|sept?(ember)?|oct(ober)?|nov(ember)?|dec(ember)?)($|[^a-z])`)
	digitIn = regexp.MustCompile(`\d`)
	// the sign is that of all by IntervalStyle
	negative = regexp.MustCompile(`^\s*-\d[\d.]*[^\d.].*\d`)
	duration = regexp.MustCompile(`^\d+ (day|week|month|year|hour|minute|second)s?$`)
)

// steadyText says whether a literal, read as any type without a time zone, is the same in every
// session.
func steadyText(text string) bool {
	return !momentIn.MatchString(text) && !negative.MatchString(text) &&
		(!monthIn.MatchString(text) || !digitIn.MatchString(text)) &&
		!slices.ContainsFunc(dayIn.FindAllString(text, -1), func(day string) bool {
			return !isoDay.MatchString(day)
		})
}

// steadyOperators do not depend on the session either.
var steadyOperators = []string{
	"=", "<>", "!=", "<", "<=", ">", ">=", "+", "-", "*", "/", "%", "^",
	"~~", "!~~", "~~*", "!~~*", "~", "!~", "~*", "!~*", "@>", "<@", "&&", "->", "->>",
	"BETWEEN", "NOT BETWEEN", "BETWEEN SYMMETRIC", "NOT BETWEEN SYMMETRIC",
}

// isSteady says whether the name of an operator is that of one of PostgreSQL's own that does
// not depend on the session.
func isSteady(operator []*pg.Node) bool {
	return !foreign(operator) && slices.Contains(steadyOperators, last(operator))
}

// steadyCall says whether a function does not depend on the session. One of a day is not to have
// a literal for the day, which is read as one with a time zone.
func steadyCall(f *pg.FuncCall) bool {
	if foreign(f.Funcname) || !slices.Contains(steadyFunctions, last(f.Funcname)) {
		return false
	}
	ofDay := slices.Contains(dayFunctions, last(f.Funcname))
	return !ofDay || len(f.Args) == 2 && f.Args[1].GetAConst() == nil
}

var dayFunctions = []string{"date_part", "extract", "date_trunc"}

// readAlike says whether the values of a table's column are read alike in every session; without
// a name, those of all.
func (t *canonicalTable) readAlike(column string) bool {
	if t.relation == nil {
		return len(t.unsteady) == 0 || column != "" && !slices.Contains(t.unsteady, column)
	}
	return !slices.ContainsFunc(t.relation.Columns, func(c catalog.Column) bool {
		return (column == "" || c.Name == column) && !alike(&c)
	})
}

// alike says whether the values of a column are read alike in every session.
func alike(c *catalog.Column) bool {
	return !strings.Contains(c.Type, "with time zone") && !strings.HasPrefix(c.Type, "tstz")
}

// steadyCast says whether a cast is.
func (c *canonicalizer) steadyCast(cast *pg.TypeCast) bool {
	names := cast.TypeName.GetNames()
	if len(names) == 0 || foreign(names) || len(cast.TypeName.GetArrayBounds()) > 0 {
		return false
	}
	to := last(names)
	text, isText := cast.Arg.GetAConst().GetVal().(*pg.A_Const_Sval)
	from := c.typeOf(cast.Arg.GetColumnRef())
	switch {
	case slices.Contains(numberTypes, to):
		return true
	case slices.Contains(dayTypes, to):
		return isText && isoDay.MatchString(text.Sval.Sval) || slices.Contains(asDay, from)
	case slices.Contains(textTypes, to):
		return cast.Arg.GetAConst() != nil || slices.Contains(asText, from)
	case to == "interval":
		return isText && duration.MatchString(text.Sval.Sval)
	}
	return false
}

// typeOf is that of a column of a protected table, "" if it is not known.
func (c *canonicalizer) typeOf(ref *pg.ColumnRef) string {
	if ref == nil || isStar(ref) || ref.Location == settled {
		return ""
	}
	names := refNames(ref)
	name := names[len(names)-1]
	for at := len(c.scopes) - 1; at >= 0; at-- {
		for _, t := range c.scopes[at] {
			if len(names) == 2 && names[0] != t.alias || !slices.Contains(t.columns, name) {
				continue
			}
			if t.relation == nil {
				return ""
			}
			return t.relation.Column(name).Type
		}
	}
	return ""
}
