package identify

import (
	"fmt"
	"slices"
	"strings"
)

// Confidence in a suggestion.
type Confidence string

// High is for what a key, a checksum or a person says; Medium for names and
// shapes; Low for what nothing is known of.
const (
	High   Confidence = "high"
	Medium Confidence = "medium"
	Low    Confidence = "low"
)

// Suggestion is a class with its reason and what would change it, both clauses
// without a full stop.
type Suggestion struct {
	Class       Class
	Reason      string
	Confidence  Confidence
	WouldChange string
}

// words of column names that tell what a column holds. Those of direct
// identifiers are tried first.
var words = []struct {
	class Class
	names []string
}{
	{DirectIdentifier, []string{
		"name", "surname", "lastname", "firstname", "forename", "fullname", "maiden", "email", "mail",
		"phone", "telephone",
		"mobile", "fax", "ssn", "social_security", "passport", "iban", "mrn", "medical_record", "address",
		"street", "license",
		"licence", "account", "username", "login", "ip", "url", "photo", "fingerprint", "nhs",
		"insurance_number", "national_id",
	}},
	{QuasiIdentifier, []string{
		"zip", "zipcode", "zip_code", "postal", "postcode", "plz", "birth", "birthday", "birthdate",
		"dob", "age", "sex", "gender",
		"race", "ethnicity", "ethnic", "marital", "marital_status", "education", "occupation",
		"profession", "job", "nationality",
		"citizenship", "country", "state", "county", "city", "town", "region", "district", "height",
		"weight", "language",
		"date", "year", "month", "day", "time", "death", // of a diagnosis, too
	}},
	{Sensitive, []string{
		"diagnosis", "diagnoses", "disease", "icd", "icd9", "icd10", "condition", "hiv", "salary",
		"income", "wage", "religion",
		"medication", "drug", "drugs", "prescription", "treatment", "therapy", "outcome", "comorbidity",
		"comorbidities",
		"symptom", "symptoms", "test_result",
	}},
}

// byName finds the word of a column name that gives it a class.
func byName(column string) (Class, string) {
	tokens := strings.FieldsFunc(strings.ToLower(column), func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9')
	})
	joined := "_" + strings.Join(tokens, "_") + "_"
	for _, w := range words {
		for _, name := range w.names {
			if strings.Contains(joined, "_"+name+"_") {
				return w.class, name
			}
		}
	}
	return Unclassified, ""
}

// What would change suggestions of one kind.
const (
	otherWord   = "a name that says something else, or somebody who knows that this one misleads"
	otherValues = "values of another form"
	somebody    = "somebody who knows that outsiders cannot know the value of a person"
)

// Suggest weighs the content of a column with its name, its type and the risk
// rate. direct says that somebody named the column as a direct identifier. Doubt
// goes to the class that shows less: a column of which nothing is known is
// suggested as a quasi-identifier, since columns of the other classes are shown
// as they are, and free text stays hidden.
func (c *Column) Suggest(t Thresholds, direct bool) Suggestion {
	switch {
	case direct:
		return Suggestion{DirectIdentifier, "named by --direct", High, "leaving it out of --direct"}
	case c.Rows == 0:
		return Suggestion{Unclassified, "there are no rows to judge by", High, "rows"}
	case c.Key:
		return Suggestion{DirectIdentifier, "key of the table", High, "a table without this key"}
	case slices.Contains(addressTypes, c.BaseType()):
		return Suggestion{
			DirectIdentifier, "its type is one of addresses of machines", High,
			"another type",
		}
	case c.BaseType() == "uuid":
		return Suggestion{DirectIdentifier, "its type is one of identifiers", High, "another type"}
	case c.Excluded():
		return Suggestion{
			Unclassified, fmt.Sprintf("more than %d %% of its values are missing", MissingLimit), High,
			"fewer missing values",
		}
	}
	if s, known := c.byContent(); known {
		return s
	}
	named, word := byName(c.Name)
	says := fmt.Sprintf("its name says %q", word)
	content := c.Evidence.content()
	if c.measured() && content != nil && !content.checked && content.class == Sensitive {
		content = nil // numbers with a fraction may look like codes
	}
	switch {
	case named == DirectIdentifier:
		return Suggestion{DirectIdentifier, says, Medium, otherWord}
	case c.unique() && !c.measured() && named == Unclassified &&
		(content == nil || content.class != QuasiIdentifier):
		return Suggestion{
			DirectIdentifier, "nearly every row has a value of its own", Medium,
			"values that several rows share",
		}
	case c.serial() && named == Unclassified:
		return Suggestion{
			DirectIdentifier, "it numbers the rows one by one", Medium,
			"numbers with gaps, or that several rows share",
		}
	case named == QuasiIdentifier:
		return Suggestion{QuasiIdentifier, says, Medium, otherWord}
	case content != nil && content.class != DirectIdentifier:
		return Suggestion{
			content.class, "its values are " + string(content.name), content.confidence(),
			otherValues,
		}
	case named == Sensitive && c.unique():
		return Suggestion{
			QuasiIdentifier, says + ", but nearly every row has a value of its own, by which it is " +
				"recognized", Low, "ranges in place of values",
		}
	case named == Sensitive:
		return Suggestion{Sensitive, says, Medium, otherWord}
	case c.Distinct == 1:
		return Suggestion{NonSensitive, "all rows have the same value", High, "a second value"}
	}
	return c.unknown(t)
}

// addressTypes are types of addresses by which a device, and who has it, is recognized.
var addressTypes = []string{"inet", "cidr", "macaddr", "macaddr8"}

// NamesPeople says that the values of a column, or its name, say that it names people.
func (c *Column) NamesPeople() bool {
	s, known := c.byContent()
	named, _ := byName(c.Name)
	return known && s.Class == DirectIdentifier || named == DirectIdentifier
}

// byContent suggests what hides a column for what its values are, whatever its
// name.
func (c *Column) byContent() (Suggestion, bool) {
	e := &c.Evidence
	content := e.content()
	switch {
	case content != nil && content.class == DirectIdentifier && (content.checked || !c.measured()):
		return Suggestion{
			DirectIdentifier, "its values are " + string(content.name),
			content.confidence(), otherValues,
		}, true
	case e.Values >= 5 && 2*e.Prose >= e.Examined && e.Examined > 0:
		return Suggestion{
			Unclassified, "free text, in which names and events hide", High, "codes in place of sentences",
		}, true
	case e.Values >= 10 && 10*e.WrittenNames >= 8*e.Examined && 5*e.KnownNames >= e.Examined:
		return Suggestion{
			DirectIdentifier, "its values look like names of people", Medium,
			"values without frequent given names and surnames",
		}, true
	}
	return Suggestion{}, false
}

// unknown is the suggestion for a column of which nothing is known.
func (c *Column) unknown(t Thresholds) Suggestion {
	s := Suggestion{QuasiIdentifier, "", Low, somebody}
	switch c.ClassByRisk(t) {
	case Sensitive:
		s.Reason = "its risk rate is above alpha: rare values make people recognizable, and sensitive " +
			"columns are shown as they are"
	case QuasiIdentifier:
		s.Reason = "its risk rate is between beta and alpha"
	default:
		s.Reason = "nothing says what it is, and outsiders may know it"
	}
	if len(c.Company) > 0 {
		s.Confidence = Medium
		s.Reason += fmt.Sprintf("; with %s it singles out %.1f %% of the rows", strings.Join(c.Company,
			", "), c.SinglesOut)
	}
	return s
}

// unique says that nearly every row that has a value has one of its own.
func (c *Column) unique() bool {
	return c.Evidence.Values > 1 && 10*c.Evidence.Values >= 9*(c.Rows-c.Missing)
}

// serial says that whole numbers count the rows, with few gaps.
func (c *Column) serial() bool {
	e := &c.Evidence
	return e.Values >= 20 && c.Missing == 0 && e.Values == c.Rows && e.Range != nil && e.Range.Whole &&
		e.Range.High-e.Range.Low < 2*float64(c.Rows)
}

func (k *kind) confidence() Confidence {
	if k.checked {
		return High
	}
	return Medium
}

// measured says that values are quantities, which are often unique and say
// nothing by themselves.
func (c *Column) measured() bool {
	numeric := []string{
		"smallint", "integer", "bigint", "real", "double precision", "numeric",
		"money",
	}
	base := c.BaseType()
	return slices.Contains(numeric, base) || base == "date" || strings.HasPrefix(base, "time") ||
		base == "interval" ||
		(c.Type == "" && (c.Evidence.All(Number) || c.Evidence.All(Day)))
}
