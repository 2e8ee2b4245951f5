package ahocorasick_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/hiatus-tailor/tailor/internal/ahocorasick"
)

func TestAWordIsFoundWhereverItStands(t *testing.T) {
	set := ahocorasick.New([]string{"patients", "Visits", "tailor", "pat", "ärzte", "u&"})
	for text, want := range map[string]bool{
		"": false, "SELECT 1": false, "select * from PATIENTS": true, "x visits": true, "pa": false,
		"papat": true,
		"tailo": false, "tailtailor": true, "SELECT * FROM \"Ärzte\"": true, "ÄRZT": false,
		"ä PATIENTS": true,
		"U&\"x\"":    true, "visit": false, "vi\x00sits": false,
	} {
		if got := set.Within(text); got != want {
			t.Errorf("%q: %t", text, got)
		}
	}
}

func TestTheAutomatonAgreesWithASearchForEachWord(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	make := func(longest int) string {
		var b strings.Builder
		for range 1 + random.IntN(longest) {
			b.WriteByte("abAB c"[random.IntN(6)])
		}
		return b.String()
	}
	for range 3000 {
		var list []string
		for range 1 + random.IntN(5) {
			list = append(list, strings.ToLower(make(5)))
		}
		set := ahocorasick.New(list)
		for range 20 {
			text := make(14)
			want := false
			for _, w := range list {
				want = want || strings.Contains(strings.ToLower(text), w)
			}
			if got := set.Within(text); got != want {
				t.Fatalf("%q in %q: %t", list, text, got)
			}
		}
	}
}

func TestNoWordIsInAnyText(t *testing.T) {
	if ahocorasick.New(nil).Within("SELECT 1") {
		t.Error("found")
	}
}

func BenchmarkWithin(b *testing.B) {
	set := ahocorasick.New([]string{
		"patients", "visits", "diagnoses", "tailor", "pg_stat", "u&",
		"chain_",
	})
	b.ReportAllocs()
	for b.Loop() {
		set.Within("SELECT abalance FROM pgbench_accounts WHERE aid = 123456;")
	}
}
