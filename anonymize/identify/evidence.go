package identify

import (
	"math"
	"regexp"
	"slices"
	"strconv"
	"unicode/utf8"
)

// Shape is a form that a text can have.
type Shape string

// The shapes that are looked for.
const (
	Number    Shape = "number"
	Day       Shape = "date"
	Email     Shape = "e-mail address"
	Telephone Shape = "telephone number"
	UUID      Shape = "UUID"
	SSN       Shape = "social security number"
	IBAN      Shape = "IBAN"
	Digits    Shape = "code of digits"
	ICD9      Shape = "ICD-9 code"
	ICD10     Shape = "ICD-10 code"
)

// patterns of the shapes.
var patterns = []struct {
	shape   Shape
	pattern string
}{
	{Number, `^[-+]?[0-9]+([.][0-9]+)?$`},
	{Day, `^[0-9]{4}-[0-9]{2}-[0-9]{2}$`},
	{Email, `^[^@ ]+@[^@ ]+[.][^@ ]+$`},
	{Telephone, `^[+(]?[0-9][-0-9 ()/.]{6}[-0-9 ()/.]*[0-9]$`},
	{UUID, `^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$`},
	{SSN, `^[0-9]{3}-[0-9]{2}-[0-9]{4}$`},
	{IBAN, `^[A-Z][A-Z][0-9][0-9][A-Z0-9]{11}[A-Z0-9]*$`},
	{Digits, `^[0-9]+$`},
	{ICD9, `^([0-9]{3}|V[0-9]{2}|E[0-9]{3})[.]?[0-9]{0,2}$`},
	{ICD10, `^[A-Z][0-9][0-9A-Z][.]?[0-9A-Z]{0,4}$`},
}

var compiled = func() []*regexp.Regexp {
	out := make([]*regexp.Regexp, len(patterns))
	for i, p := range patterns {
		out[i] = regexp.MustCompile(p.pattern)
	}
	return out
}()

func patternOf(s Shape) string {
	for _, p := range patterns {
		if p.shape == s {
			return p.pattern
		}
	}
	panic("a shape without a pattern")
}

// shapesOf counts the values of each shape.
func shapesOf(values []string) map[Shape]int {
	shapes := make(map[Shape]int)
	for _, v := range values {
		for i, p := range patterns {
			if compiled[i].MatchString(v) {
				shapes[p.shape]++
			}
		}
	}
	return shapes
}

// Evidence is what the values of a column look like, besides how often they
// occur. The value that stands for missing ones is left out.
type Evidence struct {
	Values    int           // distinct
	Looked    int           // of those, how many were looked at for their shape
	Shapes    map[Shape]int // values of that shape
	MinLength int           // in characters
	MaxLength int
	// Examined values were looked at for their content: of these, so many are of
	// each kind, sentences, written as names are, and have a name of a dictionary.
	Examined                        int
	Kinds                           map[Kind]int
	Prose, WrittenNames, KnownNames int
	// Range of a column of numbers, nil for others.
	Range *Range
	// FirstDay and LastDay of a column of dates, "" for others.
	FirstDay, LastDay string
}

// Range holds quantiles of the numbers of a column.
type Range struct {
	Low, Tenth, Ninetieth, High float64
	Whole                       bool // no value has a fraction
}

// gather looks at the distinct values, Missing among them where withMissing.
func gather(values []string, withMissing bool) Evidence {
	if withMissing {
		values = slices.DeleteFunc(slices.Clone(values), func(v string) bool { return v == Missing })
	}
	e := Evidence{
		Values: len(values), Looked: len(values), Shapes: shapesOf(values),
		MinLength: math.MaxInt,
	}
	for _, v := range values {
		n := utf8.RuneCountInString(v)
		e.MinLength, e.MaxLength = min(e.MinLength, n), max(e.MaxLength, n)
		if e.FirstDay == "" || v < e.FirstDay {
			e.FirstDay = v
		}
		e.LastDay = max(e.LastDay, v)
	}
	if e.Values == 0 {
		e.MinLength = 0
	}
	if !e.All(Day) {
		e.FirstDay, e.LastDay = "", ""
	}
	if e.All(Number) {
		e.Range = newRange(values)
	}
	e.examine(values)
	return e
}

func newRange(values []string) *Range {
	var numbers []float64
	whole := true
	for _, v := range values {
		if n, err := strconv.ParseFloat(v, 64); err == nil {
			numbers = append(numbers, n)
			whole = whole && n == math.Trunc(n)
		}
	}
	slices.Sort(numbers)
	at := func(share float64) float64 { return numbers[int(share*float64(len(numbers)-1))] }
	return &Range{Low: at(0), Tenth: at(.1), Ninetieth: at(.9), High: at(1), Whole: whole}
}

// All says that there are values and that every one has the shape.
func (e *Evidence) All(s Shape) bool { return e.Looked > 0 && e.Shapes[s] == e.Looked }
