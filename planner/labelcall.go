package planner

import (
	"slices"

	pg "github.com/pganalyze/pg_query_go/v5"

	"github.com/hiatus-tailor/tailor/ecg"
	"github.com/hiatus-tailor/tailor/internal/sqlstate"
)

// Functions that say how a quasi-identifier of a row is shown. They are no functions of
// the database: what the release has stands in their place.
var labelFunctions = []string{
	"label",  // its label, a text
	"exact",  // whether the value is what the table has
	"bounds", // the least and the greatest value that the label covers, an array
}

// isLabelCall says whether a call is of one of them, or says how certain a condition is.
func (b *binder) isLabelCall(f *pg.FuncCall) bool {
	names := f.GetFuncname()
	if len(names) == 0 || !slices.Contains(labelFunctions, last(names)) &&
		!slices.Contains(certaintyFunctions, last(names)) {
		return false
	}
	if len(names) == 1 {
		return slices.Contains(b.session.SearchPath, "tailor")
	}
	return names[len(names)-2].GetString_().GetSval() == "tailor"
}

// labelCall binds such a call.
func (b *binder) labelCall(f *pg.FuncCall, sc *scope, place ecg.Place) error {
	name := last(f.Funcname)
	if slices.Contains(certaintyFunctions, name) {
		return b.certaintyCall(f, sc, place)
	}
	refuse := func(what string) error {
		return sqlstate.New(sqlstate.FeatureNotSupported, "tailor.%s cannot be asked %s", name, what).
			WithHint("It takes a quasi-identifier of a protected table that stands in the same FROM list: "+
				"tailor.%s(age).", name).
			At(b.statement, int(f.Location))
	}
	if len(f.Args) != 1 || f.Args[0].GetColumnRef() == nil || isStar(f.Args[0].GetColumnRef()) {
		return refuse("of anything but a column")
	}
	if f.AggDistinct || f.AggFilter != nil || f.Over != nil || f.AggOrder != nil || f.FuncVariadic {
		return refuse("as an aggregate or over a window")
	}
	r, err := b.resolve(sc, f.Args[0].GetColumnRef())
	if err != nil {
		return err
	}
	o := r.origin
	if o.qid() == nil || o.entry.relation == nil || !sc.reaches(o.entry) {
		return refuse("of this column")
	}
	b.at = int(f.Args[0].GetColumnRef().Location)
	b.use(o, place)
	b.at = -1
	o.entry.mention(o.at)
	var parts []edit
	switch listed := o.entry.via == nil && o.entry.relation.Numbers(o.qid()); {
	case name == "label":
		parts = []edit{{text: o.label()}}
	case !listed:
		return refuse("of what one table shows of another")
	case name == "exact":
		parts = o.listed(o.qid().ExactColumn(), "CASE WHEN "+o.number()+" OPERATOR(pg_catalog.=) 0 "+
			"THEN true ELSE ", "["+o.number()+"] END")
	case !o.qid().IsMeasured():
		return refuse("of a column that is no date and no number by intervals")
	default:
		parts = o.listed(o.qid().LowColumn(), "CASE WHEN "+o.number()+
			" OPERATOR(pg_catalog.>) 0 THEN ARRAY[", "["+o.number()+"], ")
		parts = append(parts, o.listed(o.qid().HighColumn(), "", "["+o.number()+"]] END")...)
	}
	return b.replaceCall(f, parts)
}

// replaceCall puts parts of a text in place of a call of a function.
func (b *binder) replaceCall(f *pg.FuncCall, parts []edit) error {
	first, end := b.extentOf(f)
	behind := parts[len(parts)-1]
	behind.start, behind.end = first, end
	if err := b.editAt(first, parts[:len(parts)-1]); err != nil {
		return err
	}
	return b.edit(behind)
}

// extentOf is where a call of a function stands in the text.
func (b *binder) extentOf(f *pg.FuncCall) (first, end int) {
	return int(f.Location), int(b.tokens[b.closing(b.opening(f))].End)
}

// opening is the index of the parenthesis behind the name of a function.
func (b *binder) opening(f *pg.FuncCall) int {
	open := b.tokenAt(int(f.Location))
	for b.tokens[open].Token != pg.Token_ASCII_40 {
		open++
	}
	return open
}

// nameLabelCall gives an output column that is such a call its name, which PostgreSQL
// would take from the function.
func (b *binder) nameLabelCall(target *pg.ResTarget) error {
	f := target.GetVal().GetFuncCall()
	if f == nil || target.Name != "" || !b.isLabelCall(f) {
		return nil
	}
	begin, end := b.extentOf(f)
	first, behind := b.tokenAt(begin), b.tokenAt(end)
	for behind < len(b.tokens) && b.tokens[first-1].Token == pg.Token_ASCII_40 &&
		b.tokens[behind].Token == pg.Token_ASCII_41 {
		first, behind, end = first-1, behind+1, int(b.tokens[behind].End)
	}
	return b.insert(end, " AS "+quoted(last(f.Funcname)))
}
