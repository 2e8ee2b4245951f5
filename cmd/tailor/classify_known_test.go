package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hiatus-tailor/tailor/internal/refdata"
)

// knownAnswers are tables whose quasi-identifiers their publishers declare: those that ARX,
// pyCANON and mu-Argus are tested with, the records of [Menten2024], and the examples of
// [Li2007] and [PrasserBild2016]. The quasi-identifiers of "" are all columns.
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
	{"arx/creditcard_int/creditcard_int.csv", ""},
	{"thesis/df_1000_rows/stage_1_df_mock_1000.csv", "age,comorbidities,covid19_symptoms"},
	{"muargus/Demofree.asc", laborSurvey},
	{"nue/expected.json", ""},
}

// laborSurvey are the columns of Demofree.asc that Demofree.rda gives a level of identification.
const laborSurvey = "region,sex,age,marstat,kindpers,numyoung,numold,ageyoung,educ1,educ2,etni," +
	"prioccu,poslabm,regjobc,recben,recunben,recodben,recbill,recsosec,recpens,poslably,posfact," +
	"compcode,occucode,kindfact,tenure,ftptime,addjob,jobfind"

// known is the path of a table as a CSV file with a header.
func known(t *testing.T, name string) string {
	t.Helper()
	path := refdata.Path(t, name)
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	switch filepath.Ext(name) {
	case ".asc":
		return file(t, "survey.csv", laborSurvey+",weight,income,money,assets,debts\n"+string(raw))
	case ".json":
		var example struct {
			Tables struct{ D struct{ Age, Sex []string } }
		}
		if err := json.Unmarshal(raw, &example); err != nil {
			t.Fatal(err)
		}
		text := "age,sex\n"
		for i, age := range example.Tables.D.Age {
			text += age + "," + example.Tables.D.Sex[i] + "\n"
		}
		return file(t, "example.csv", text)
	}
	return path
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
	for _, table := range knownAnswers {
		code, stdout, fault := tailor(
			t, "classify", "--format", "json", "--csv", known(t, table.file),
		)
		var r classifyReport
		if err := json.Unmarshal([]byte(stdout), &r); err != nil || code != exitSuccess {
			t.Fatalf("exit %d, %v, %s", code, err, fault)
		}
		declared := strings.Split(table.quasi, ",")
		for _, c := range r.Columns {
			is := table.quasi == "" || slices.Contains(declared, c.Name)
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
