package main

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/hiatus-tailor/tailor/internal/refdata"
)

// knownAnswers are tables whose quasi-identifiers their publishers declare:
// those that ARX and pyCANON test with, and the example of [Li2007].
var knownAnswers = []struct{ file, quasi string }{
	{
		"arx/adult/adult.csv",
		"sex,age,race,marital-status,education,native-country,workclass,occupation,salary-class",
	},
	{"arx/ss13acs/ss13acs.csv", "Age,Sex,Race,Marital status,Education"},
	{"pycanon/StudentsMath_Score.csv", "Teacher,Gender,Ethnic,Freeredu,wesson"},
	{"pycanon/hospital_anonymized.csv", "name,age,gender,city,religion"},
	{"pycanon/drug_type.csv", "Age,Sex,BP,Cholesterol,Na_to_K"},
	{"pycanon/li2007_salary.csv", "zip,age"},
}

// agreement counts columns over all tables.
type agreement struct{ declared, protected, suggested, right int }

func (a agreement) String() string {
	return fmt.Sprintf(
		"%d of %d declared quasi-identifiers are not shown as they are, %d of %d suggested ones are "+
			"declared",
		a.protected, a.declared, a.right, a.suggested,
	)
}

func TestSuggestionsAgainstDeclaredQuasiIdentifiers(t *testing.T) {
	var ours, byRate agreement
	for _, known := range knownAnswers {
		code, stdout, fault := tailor(
			t, "classify", "--format", "json", "--csv", refdata.Path(t, known.file),
		)
		var r classifyReport
		if err := json.Unmarshal([]byte(stdout), &r); err != nil || code != exitSuccess {
			t.Fatalf("exit %d, %v, %s", code, err, fault)
		}
		declared := strings.Split(known.quasi, ",")
		for _, c := range r.Columns {
			is := slices.Contains(declared, c.Name)
			ours.count(
				is, c.Suggested == "quasi_identifier",
				c.Suggested == "sensitive" || c.Suggested == "non_sensitive",
			)
			byRate.count(is, c.ByRisk == "QID", c.ByRisk == "SA" || c.ByRisk == "NSA")
		}
	}
	raw, err := os.ReadFile("../../docs/experiments.md")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Join(strings.Fields(string(raw)), " ")
	for _, line := range []string{
		"Suggestions: " + ours.String(),
		"The rate alone: " + byRate.String(),
	} {
		if !strings.Contains(text, line) {
			t.Errorf("docs/experiments.md does not say %q", line)
		}
	}
}

func (a *agreement) count(declared, suggested, shown bool) {
	if declared {
		a.declared++
		if !shown {
			a.protected++
		}
	}
	if suggested {
		a.suggested++
		if declared {
			a.right++
		}
	}
}
