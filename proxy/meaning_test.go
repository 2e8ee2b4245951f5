package proxy

import (
	"bytes"
	"slices"
	"testing"
)

// TestACheckOfNamesThatIsCancelledIsCancelled: only what the check itself says is told as its
// refusal.
func TestACheckOfNamesThatIsCancelledIsCancelled(t *testing.T) {
	for code, want := range map[string]string{"22012": "0A000", "57014": "57014", "53200": "53200"} {
		s, _, _ := bareSession(bytes.NewReader(nil), bytes.NewReader(slices.Concat(
			framed('3', nil), framed('1', nil), framed('2', nil),
			framed('E', []byte("SERROR\x00VERROR\x00C"+code+"\x00Mfailed\x00\x00")),
			framed('Z', []byte("I")))))
		var told bytes.Buffer
		s.out.to = &told
		if err := s.assertNames("SELECT age FROM patients"); err != nil {
			t.Fatal(err)
		}
		s.expect.add(bare['S'])
		for range 5 {
			frame, err := s.server.frames.next()
			if err == nil {
				_, err = s.passBack(frame, false)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if got := codeOf(told.Bytes()); got != want {
			t.Errorf("%s is told as %s, want %s", code, got, want)
		}
		if s.expect.head() != nil {
			t.Errorf("%s: an answer is expected", code)
		}
	}
}
