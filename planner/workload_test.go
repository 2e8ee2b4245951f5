package planner_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/hiatus-tailor/tailor/planner"
)

func TestWorkloadsListTheCombinationOfEachStatement(t *testing.T) {
	declared, err := planner.Workload(`
		SELECT sex, avg(age) FROM patients WHERE zip LIKE '1;2%' GROUP BY sex;
		SELECT 1; -- ;
		SELECT count(*) FROM patients;
		SELECT age FROM patients ORDER BY age;`, session, hospitalSnapshot())
	if err != nil {
		t.Fatal(err)
	}
	if len(declared) != 1 || fmt.Sprint(declared[0].Combinations) != "[[zip sex age] [age]]" {
		t.Errorf("%+v", declared)
	}
	_, err = planner.Workload("SELECT age FROM patients; SELECT name FROM patients", session,
		hospitalSnapshot())
	if err == nil || !strings.HasPrefix(err.Error(), "statement 2: ") {
		t.Errorf("a statement that is refused: %v", err)
	}
}
