package main

import (
	"strings"
	"testing"
)

func TestAServerThatWasNeverTestedIsRefused(t *testing.T) {
	for version, tested := range map[int]bool{
		90624: false, 130021: false, 140000: true, 150018: true, 189999: true, 190000: false,
	} {
		err := assertTested(version, false)
		if (err == nil) != tested {
			t.Errorf("%d: %v", version, err)
		}
		if err != nil && !strings.Contains(err.Error(), "--untested-postgresql") {
			t.Errorf("%d: %v does not say what to do", version, err)
		}
		if err := assertTested(version, true); err != nil {
			t.Errorf("%d, taken all the same: %v", version, err)
		}
	}
}
