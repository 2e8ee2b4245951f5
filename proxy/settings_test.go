package proxy

import (
	"testing"
)

func TestOnlyPlainQueriesLeaveSettingsBeyondDoubt(t *testing.T) {
	for text, want := range map[string]bool{
		"SELECT 1": true, " select n from t where a = 'x'; ": true, "TABLE t": true, "": false,
		"SELECT f(1)":        false,
		"SELECT 1; SELECT 2": false, "BEGIN": false, "WITH x AS (SELECT 1) TABLE x": false,
		"EXECUTE s": false, "selection 1": false,
	} {
		if plain(text) != want {
			t.Errorf("%q: %t", text, !want)
		}
	}
}
