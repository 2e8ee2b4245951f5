package identify

import (
	"fmt"
	"slices"
	"strings"
)

// Suggestion is a class with its reason, a clause without a full stop.
type Suggestion struct {
	Class  Class
	Reason string
}

// words of column names that tell what a column holds. Those of direct
// identifiers are tried first.
var words = []struct {
	class Class
	names []string
}{
	{DirectIdentifier, []string{
		"name", "surname", "lastname", "firstname", "forename", "fullname", "maiden", "email", "mail", "phone", "telephone",
		"mobile", "fax", "ssn", "social_security", "passport", "iban", "mrn", "medical_record", "address", "street", "license",
		"licence", "account", "username", "login", "ip", "url", "photo", "fingerprint", "nhs", "insurance_number", "national_id",
	}},
	{QuasiIdentifier, []string{
		"zip", "zipcode", "zip_code", "postal", "postcode", "plz", "birth", "birthday", "birthdate", "dob", "age", "sex", "gender",
		"race", "ethnicity", "ethnic", "marital", "marital_status", "education", "occupation", "profession", "job", "nationality",
		"citizenship", "country", "state", "county", "city", "town", "region", "district", "height", "weight", "language",
		"admission_date", "discharge_date", "death",
	}},
	{Sensitive, []string{
		"diagnosis", "diagnoses", "disease", "icd", "icd9", "icd10", "condition", "hiv", "salary", "income", "wage", "religion",
		"medication", "drug", "drugs", "prescription", "treatment", "therapy", "outcome", "comorbidity", "comorbidities",
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

// Suggest weighs the risk rate with names, types and shapes. direct says that
// somebody named the column as a direct identifier. Doubt goes to the class
// that shows less: an attribute with many rare values is suggested as a
// quasi-identifier, not as sensitive, because sensitive attributes are shown
// as they are.
func (c *Column) Suggest(t Thresholds, direct bool) Suggestion {
	unique := c.Evidence.Values > 1 && 10*c.Evidence.Values >= 9*(c.Rows-c.Missing)
	named, word := byName(c.Name)
	switch {
	case direct:
		return Suggestion{DirectIdentifier, "named by --direct"}
	case c.Rows == 0:
		return Suggestion{Unclassified, "there are no rows to judge by"}
	case c.Key:
		return Suggestion{DirectIdentifier, "key of the table"}
	case c.Excluded():
		return Suggestion{Unclassified, fmt.Sprintf("more than %d %% of its values are missing", MissingLimit)}
	}
	for _, s := range []Shape{Email, SSN, IBAN, UUID} {
		if c.Evidence.most(s) {
			return Suggestion{DirectIdentifier, "each value looks like " + article(s)}
		}
	}
	switch {
	case c.Evidence.most(Telephone) && !c.Evidence.most(Number) && !c.Evidence.most(Day):
		return Suggestion{DirectIdentifier, "each value looks like a telephone number"}
	case named == DirectIdentifier:
		return Suggestion{DirectIdentifier, fmt.Sprintf("its name says %q", word)}
	case unique && !c.measured() && named == Unclassified:
		return Suggestion{DirectIdentifier, "nearly every row has a value of its own"}
	case named == QuasiIdentifier:
		return Suggestion{QuasiIdentifier, fmt.Sprintf("its name says %q", word)}
	case named == Sensitive:
		return Suggestion{Sensitive, fmt.Sprintf("its name says %q", word)}
	}
	switch c.ClassByRisk(t) {
	case Sensitive:
		return Suggestion{QuasiIdentifier, "its risk rate is above alpha: rare values make people recognizable, and sensitive columns are shown as they are"}
	case QuasiIdentifier:
		return Suggestion{QuasiIdentifier, "its risk rate is between beta and alpha"}
	}
	return Suggestion{NonSensitive, "its risk rate is below beta"}
}

// measured says that values are quantities, which are often unique and say
// nothing by themselves.
func (c *Column) measured() bool {
	numeric := []string{"smallint", "integer", "bigint", "real", "double precision", "numeric", "money"}
	base, _, _ := strings.Cut(c.Type, "(")
	return slices.Contains(numeric, base) || base == "date" || strings.HasPrefix(base, "time") || base == "interval" ||
		(c.Type == "" && (c.Evidence.All(Number) || c.Evidence.All(Day)))
}

func article(s Shape) string {
	if strings.ContainsAny(string(s[0]), "aeIi") {
		return "an " + string(s)
	}
	return "a " + string(s)
}
