package identify_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/hiatus-tailor/tailor/anonymize/identify"
)

// repeated has each value n times.
func repeated(n int, values ...string) []string { return slices.Repeat(values, n) }

// numbered makes n texts of a form with a number.
func numbered(n int, form string) (out []string) {
	for i := range n {
		out = append(out, fmt.Sprintf(form, i))
	}
	return out
}

func suggest(name string, cells []string) identify.Suggestion {
	return identify.NewColumn(name, cells).Suggest(identify.DefaultThresholds(), false)
}

func TestAColumnOfWhichNothingIsKnownIsAQuasiIdentifier(t *testing.T) {
	for name, cells := range map[string][]string{
		"zip3": repeated(2000, "352", "353", "354"), "married": repeated(5000, "y", "n"),
		"x":  repeated(3000, "a", "b", "c"),
		"q7": repeated(1000, "1", "2", "3", "4"), "amount": numbered(500, "%d.5"), "code": repeated(1000,
			"A1", "B2"),
		"ward": repeated(500, "A12", "B07", "C33"), "v2": {
			"170.5", "165.2", "181.0", "170.5", "177.7",
			"190.1",
		},
	} {
		s := suggest(name, cells)
		if s.Class != identify.QuasiIdentifier || s.Confidence != identify.Low || s.Reason == "" ||
			s.WouldChange == "" {
			t.Errorf("%s: %+v", name, s)
		}
	}
}

func TestASensitiveNameIsNotEnoughForValuesThatSingleRowsOut(t *testing.T) {
	if s := suggest("salary", repeated(30, "20000", "30000", "40000")); s.Class != identify.Sensitive {
		t.Errorf("a salary in steps: %+v", s)
	}
	if s := suggest("salary", numbered(90, "2%d7.25")); s.Class != identify.QuasiIdentifier ||
		s.Confidence != identify.Low {
		t.Errorf("a salary to the cent: %+v", s)
	}
}

func TestWhenSomethingSensitiveWasIsKnownToOutsiders(t *testing.T) {
	years := repeated(300, "2002", "2012", "2019")
	for _, name := range []string{"ms_diagnosis_date", "year of diagnosis", "treatment-month"} {
		if s := suggest(name, years); s.Class != identify.QuasiIdentifier {
			t.Errorf("%s: %+v", name, s)
		}
	}
}

func TestContentTellsWhatAColumnIsWhateverItsName(t *testing.T) {
	for claim, c := range map[string]struct {
		cells []string
		class identify.Class
		says  string
		sure  identify.Confidence
	}{
		"e-mail": {
			numbered(30, "u%d@example.org"), identify.DirectIdentifier, "e-mail",
			identify.Medium,
		},
		"few e-mails": {
			repeated(50, "a@example.org", "b@example.org"), identify.DirectIdentifier,
			"e-mail", identify.Medium,
		},
		"IBAN": {
			repeated(9, "DE89370400440532013000", "GB82WEST12345698765432"),
			identify.DirectIdentifier, "IBAN", identify.High,
		},
		"NHS numbers": {repeated(9, "9434765919", "4010232137", "943 476 5870", "5990128088",
			"1275988113"), identify.DirectIdentifier, "NHS", identify.High},
		"telephone": {
			repeated(9, "+49 30 901820", "030/901821", "(030) 901822"),
			identify.DirectIdentifier, "telephone", identify.Medium,
		},
		"names": {names(), identify.DirectIdentifier, "names of people", identify.Medium},
		"free text": {
			numbered(40, "the patient %d came in with a cough"), identify.Unclassified,
			"free text", identify.High,
		},
		"shared prose": {repeated(9, slices.Clone(numbered(6,
			"seen again after %d weeks at home"))...), identify.Unclassified, "free text", identify.High},
		"ICD-10": {
			repeated(9, "E11.9", "I10", "J45.0", "F32.1"), identify.Sensitive, "ICD",
			identify.Medium,
		},
		"ATC": {
			repeated(9, "A10BA02", "C07AB02", "N02BE01"), identify.Sensitive, "ATC",
			identify.Medium,
		},
		"LOINC": {
			repeated(9, "2345-7", "718-7", "4548-4", "2160-0", "6690-2"),
			identify.Sensitive, "LOINC", identify.High,
		},
		"SNOMED": {
			repeated(9, "73211009", "22298006", "38341003", "195967001", "84114007"),
			identify.Sensitive, "SNOMED", identify.High,
		},
		"British codes": {
			repeated(9, "SW1A 1AA", "M1 1AE", "EC1A 1BB"), identify.QuasiIdentifier,
			"British postcodes", identify.Medium,
		},
		"dates": {
			numbered(28, "%02d.03.1987"), identify.QuasiIdentifier, "dates",
			identify.Medium,
		},
		"written dates": {
			repeated(9, "3 March 1980", "12 May 1975"), identify.QuasiIdentifier,
			"dates", identify.Medium,
		},
		"addresses in texts": {
			repeated(9, "Ann <ann@example.org>", "to bob@example.com"),
			identify.DirectIdentifier, "e-mail", identify.Medium,
		},
		"dates in texts": {
			repeated(9, "seen 2019-03-04", "left 5.6.2020, well"),
			identify.QuasiIdentifier, "texts with dates", identify.Medium,
		},
		"row numbers": {
			numbered(200, "%d"), identify.DirectIdentifier, "numbers the rows",
			identify.Medium,
		},
		"one value": {
			repeated(100, "DE"), identify.NonSensitive, "the same value",
			identify.High,
		},
		"no checksum": {repeated(9, "9434765918", "4010232138", "9434765871", "5990128089",
			"1275988114"), identify.QuasiIdentifier, "", identify.Low},
		"half of them": {repeated(9, "9434765919", "9434765918", "4010232137", "4010232138",
			"5990128088"), identify.QuasiIdentifier, "", identify.Low},
		"cities": {repeated(9, "Berlin", "Florence", "Jordan", "Paris", "Rome", "Madrid",
			"Vienna", "Bern", "Oslo", "Dublin"), identify.QuasiIdentifier, "", identify.Low},
	} {
		s := suggest("v", c.cells)
		if s.Class != c.class || !strings.Contains(s.Reason, c.says) || s.Confidence != c.sure {
			t.Errorf("%s: %+v, want %q, %s", claim, s, c.class, c.sure)
		}
	}
}

// names are people's, each several times.
func names() (out []string) {
	for _, given := range []string{"Anna", "Hans", "Fatima", "Piotr", "Zoltan"} {
		for _, family := range []string{"Huber", "Okafor", "García"} {
			out = append(out, given+" "+family, family+", "+given)
		}
	}
	return repeated(3, out...)
}

func TestChecksumsRefuseEveryOtherDigit(t *testing.T) {
	for kind, valid := range map[string][]string{
		"card": {"4111111111111111", "5500005555555559"}, "IBAN": {"DE89370400440532013000"},
		"NHS": {"9434765919"}, "DNI": {"12345678Z", "X1234567L"}, "NIR": {"255081416802538"},
		"German tax": {"86095742719", "65929970489"}, "BSN": {"111222333"}, "PESEL": {"44051401359"},
		"CPF":          {"111.444.777-35"},
		"personnummer": {"811218-9876"}, "SIN": {"046 454 286"}, "LOINC": {"2345-7", "718-7"},
		"SNOMED": {"73211009"}, "Aadhaar": {"234123412346"},
	} {
		for _, text := range valid {
			if !identify.IsKind(kind, text) {
				t.Errorf("%s: %s is refused", kind, text)
			}
			for i, r := range text {
				for d := '0'; d <= '9'; d++ {
					other := text[:i] + string(d) + text[i+1:]
					if r >= '0' && r <= '9' && r != d && identify.IsKind(kind, other) {
						t.Errorf("%s: %s passes", kind, other)
					}
				}
			}
		}
	}
}
