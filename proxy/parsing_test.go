package proxy

import (
	"slices"
	"testing"

	decode "github.com/jackc/pgx/v5/pgproto3"
)

// FuzzParsing reads what pgx's decoder reads, and refuses what that refuses.
func FuzzParsing(f *testing.F) {
	for _, body := range []string{
		"", "\x00", "\x00\x00", "\x00\x00\x00\x00", "s\x00SELECT $1\x00\x00\x01\x00\x00\x00\x17",
		"\x00SELECT $1\x00\x00\x02\x00\x00\x00\x17",
		"\x00SELECT 1\x00\xff\xff", "\x00SELECT 1\x00\x00\x00more",
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		var want decode.Parse
		err := want.Decode(body)
		got, ok := parsingOf(body)
		if ok != (err == nil) {
			t.Fatalf("%q: %t, pgx: %v", body, ok, err)
		}
		if ok && (string(got.name) != want.Name || string(got.query) != want.Query ||
			!slices.Equal(got.types, want.ParameterOIDs)) {
			t.Errorf("%q: %q, %q, %v; pgx: %+v", body, got.name, got.query, got.types, want)
		}
	})
}
