package proxy

import "testing"

func TestTextsThatSetWhatPostgreSQLDoesNotListAreSeen(t *testing.T) {
	for text, want := range map[string]bool{
		"SET my.variable = 1":                                                       true,
		"set session \"my\" . x to 'y'":                                             true,
		"BEGIN; SET my.variable = 1; COMMIT":                                        true,
		"/* a */ SET my.variable = 1":                                               true,
		"-- a\nSET my.variable = 1":                                                 true,
		"SELECT set_config('my.variable', '1', false)":                              true,
		"SELECT set_config($1, '1', false)":                                         true,
		"SELECT set_config('work_mem', $1, false)":                                  false,
		"SELECT pg_catalog.set_config ( 'TimeZone', 'UTC', true)":                   false,
		"SELECT set_config('work_mem', '1', false), set_config(n, v, false) FROM x": true,
		"LOAD 'auto_explain'":                                                       true,
		"SET work_mem = '1MB'":                                                      false,
		"SET LOCAL my.variable = 1":                                                 false,
		"SET tailor.notices = off":                                                  false,
		"SET Tailor.Project TO 'x'":                                                 false,
		"SET tailor.other = 1":                                                      true,
		"UPDATE t SET a = b.c FROM b":                                               false,
		"SELECT loaded, reset, offset FROM t.se":                                    false,
	} {
		if hides(text) != want {
			t.Errorf("%s: %v, want %v", text, !want, want)
		}
	}
}
