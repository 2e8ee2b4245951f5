package identify

import (
	"regexp"
	"strings"
	"unicode"
)

// Kind is what values are by their content.
type Kind string

// kind is one of them: how it is recognized and what follows.
type kind struct {
	name  Kind
	class Class
	is    func(value string) bool
	// checked says that a checksum stands behind it, least how many values have
	// to be there before their number rules out chance.
	checked bool
	least   int
}

// examinedAtMost is how many values of a column are looked at for their content.
const examinedAtMost = 10_000

// examine looks at the content of values, evenly chosen where they are many.
func (e *Evidence) examine(values []string) {
	if step := (len(values) + examinedAtMost - 1) / examinedAtMost; step > 1 {
		var chosen []string
		for i := 0; i < len(values); i += step {
			chosen = append(chosen, values[i])
		}
		values = chosen
	}
	e.Examined, e.Kinds = len(values), kindsOf(values)
	e.Prose = prose(values)
	e.WrittenNames, e.KnownNames = personNames(values)
}

// Examine has a look at the shapes and the content of distinct values that come
// from a database, where the other figures are measured.
func (e *Evidence) Examine(values []string) {
	e.Looked, e.Shapes = len(values), shapesOf(values)
	e.examine(values)
}

// matching recognizes by a pattern.
func matching(pattern string) func(string) bool { return regexp.MustCompile(pattern).MatchString }

// kinds in the order in which they are believed: documents, then codes, then
// what has no checksum. The name of a kind follows "its values are".
var kinds = []kind{
	{"e-mail addresses", DirectIdentifier, matching(`[^@ <]@[^@ ]+[.][A-Za-z]{2,}`), false, 1},
	{"IBANs, which their checksums confirm", DirectIdentifier, iban, true, 2},
	{"UUIDs", DirectIdentifier, matching(patternOf(UUID)), false, 1},
	{"US social security numbers", DirectIdentifier, matching(patternOf(SSN)), false, 1},
	{"card numbers, which their checksums confirm", DirectIdentifier, cardNumber, true, 5},
	{"NHS numbers, which their checksums confirm", DirectIdentifier, nhsNumber, true, 5},
	{"Spanish DNI or NIE, which their letters confirm", DirectIdentifier, dni, true, 5},
	{"French NIR, which their checksums confirm", DirectIdentifier, nir, true, 5},
	{"German tax numbers, which their checksums confirm", DirectIdentifier, taxID, true, 5},
	{"Polish PESEL, which their checksums confirm", DirectIdentifier, pesel, true, 5},
	{"Brazilian CPF, which their checksums confirm", DirectIdentifier, cpf, true, 5},
	{
		"Swedish personnummer, which their checksums confirm",
		DirectIdentifier,
		personnummer,
		true,
		5,
	},
	{"Indian Aadhaar numbers, which their checksums confirm", DirectIdentifier, aadhaar, true, 5},
	{"Dutch BSN, which their checksums confirm", DirectIdentifier, bsn, true, 5},
	{"Canadian SIN, which their checksums confirm", DirectIdentifier, socialInsurance, true, 5},
	{"LOINC codes, which their checksums confirm", Sensitive, loinc, true, 5},
	{"SNOMED CT concepts, which their checksums confirm", Sensitive, snomed, true, 5},
	{
		"ATC codes of drugs",
		Sensitive,
		matching(`^[ABCDGHJLMNPRSV][0-9]{2}[A-Z]{2}[0-9]{2}$`),
		false,
		3,
	},
	{
		icdCodes,
		Sensitive,
		matching(`^([0-9]{3}|V[0-9]{2}|E[0-9]{3}|[A-Z][0-9][0-9A-Z])[.][0-9A-Z]{1,4}$`),
		false,
		3,
	},
	{
		"British postcodes",
		QuasiIdentifier,
		matching(`^[A-Z]{1,2}[0-9][0-9A-Z]? ?[0-9][A-Z]{2}$`),
		false,
		3,
	},
	{
		"Canadian postal codes",
		QuasiIdentifier,
		matching(`^[A-Z][0-9][A-Z][ -]?[0-9][A-Z][0-9]$`),
		false,
		3,
	},
	{"Dutch postcodes", QuasiIdentifier, matching(`^[1-9][0-9]{3} ?[A-Z]{2}$`), false, 3},
	{"Irish Eircodes", QuasiIdentifier, matching(`^[A-Z][0-9][0-9W] ?[0-9A-Z]{4}$`), false, 3},
	{"ZIP+4 codes", QuasiIdentifier, matching(`^[0-9]{5}-[0-9]{4}$`), false, 3},
	{"Polish postal codes", QuasiIdentifier, matching(`^[0-9]{2}-[0-9]{3}$`), false, 3},
	{"Portuguese postal codes", QuasiIdentifier, matching(`^[0-9]{4}-[0-9]{3}$`), false, 3},
	{"Brazilian CEP", QuasiIdentifier, matching(`^[0-9]{5}-[0-9]{3}$`), false, 3},
	{"Japanese postal codes", QuasiIdentifier, matching(`^[0-9]{3}-[0-9]{4}$`), false, 3},
	{"Swedish postal codes", QuasiIdentifier, matching(`^[0-9]{3} [0-9]{2}$`), false, 3},
	{"dates", QuasiIdentifier, isDay, false, 1},
	{"telephone numbers", DirectIdentifier, isTelephone, false, 3},
	{"texts with dates in them", QuasiIdentifier, matching(
		`\b((19|20)[0-9]{2}-[01][0-9]-[0-3][0-9]|[0-3]?[0-9][./][0-3]?[0-9][./](19|20)[0-9]{2})\b`,
	), false, 1},
}

// prefixes are how many characters of codes lead to an area that takes in others, finest first.
var prefixes = map[Kind][]int{
	"British postcodes": {4, 2, 1}, "Canadian postal codes": {3, 2, 1},
	"Dutch postcodes": {4, 3, 2, 1}, "Irish Eircodes": {3, 1}, "ZIP+4 codes": {5, 3, 2, 1},
	"Polish postal codes": {4, 2, 1}, "Portuguese postal codes": {4, 3, 2, 1},
	"Brazilian CEP": {5, 3, 2, 1}, "Japanese postal codes": {3, 2, 1},
	"Swedish postal codes": {3, 2, 1},
}

// Prefixes are the lengths, finest first, of the prefixes of a column's codes that stand for
// wider classes, and what the codes are; nil where nearly all values are of no known kind.
func (e *Evidence) Prefixes() ([]int, Kind) {
	k := e.content()
	if k == nil {
		return nil, ""
	}
	return prefixes[k.name], k.name
}

// icdCodes are recognized with their point, which categories lack.
const icdCodes = "ICD codes"

// kindsOf counts the values of each kind.
func kindsOf(values []string) map[Kind]int {
	counts := make(map[Kind]int)
	for _, v := range values {
		for i := range kinds {
			if kinds[i].is(v) {
				counts[kinds[i].name]++
			}
		}
	}
	return counts
}

// content is the first kind that nearly all values have, nil for none.
func (e *Evidence) content() *kind {
	for i := range kinds {
		k := &kinds[i]
		share := 90
		switch {
		case k.checked: // one digit in ten fits by chance
			share = 97
		case k.name == icdCodes:
			share = 50
		}
		if e.Examined >= k.least && 100*e.Kinds[k.name] >= share*e.Examined {
			return k
		}
	}
	return nil
}

var dayPatterns = []func(string) bool{
	matching(patternOf(Day)),
	matching(`^[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}`),
	matching(`^(19|20)[0-9]{2}[/.][01]?[0-9][/.][0-3]?[0-9]$`),
	matching(`^[0-3]?[0-9][./-][0-3]?[0-9][./-]((19|20)[0-9]{2}|[0-9]{2})$`),
	matching(`^(19|20)[0-9]{2}(0[1-9]|1[0-2])(0[1-9]|[12][0-9]|3[01])$`),
	matching(`(?i)^[0-3]?[0-9][. ]*(` + months + `)[a-zé]*[. ,]*(19|20)?[0-9]{2}$`),
	matching(`(?i)^(` + months + `)[a-z]*[. ]+[0-3]?[0-9](st|nd|rd|th)?[ ,]+(19|20)[0-9]{2}$`),
}

const months = "jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec|mär|mai|okt|dez|fév|avr|aoû|déc"

// isDay says that a text is a date in a form that people write.
func isDay(text string) bool {
	for _, is := range dayPatterns {
		if is(text) {
			return true
		}
	}
	return false
}

var telephone = matching(patternOf(Telephone))

// isTelephone is stricter than the shape: a plain number is none.
func isTelephone(text string) bool {
	digits := len(digitsOf(text, "+-() /."))
	return telephone(text) && digits >= 7 && digits <= 15 && strings.ContainsAny(text, "+-() /") &&
		!isDay(text)
}

// prose counts the values of five words or more, or of more than 60 characters
// with a space.
func prose(values []string) (n int) {
	for _, v := range values {
		if words := len(strings.Fields(v)); words >= 5 || (words >= 3 && len(v) > 60) {
			n++
		}
	}
	return n
}

// personNames counts the values that are written as names are, and of those the
// ones that have a name of the dictionary.
func personNames(values []string) (written, known int) {
	for _, v := range values {
		tokens := strings.FieldsFunc(
			v, func(r rune) bool { return r == ' ' || r == ',' || r == '.' || r == '-' },
		)
		if len(tokens) == 0 || len(tokens) > 5 || strings.ContainsFunc(v, func(r rune) bool {
			return !unicode.IsLetter(r) && !strings.ContainsRune(" ,.-'’", r)
		}) {
			continue
		}
		listed := false
		for _, token := range tokens {
			listed = listed || givenNames[strings.ToLower(token)]
		}
		if written++; listed {
			known++
		}
	}
	return written, known
}
