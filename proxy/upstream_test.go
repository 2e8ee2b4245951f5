package proxy

import (
	"testing"

	"github.com/jackc/pgproto3/v2"
)

// TestParametersComeInTheServersOrder tells a changed parameter in its old place
// and as it is now: the next session is greeted with it as by the server.
func TestParametersComeInTheServersOrder(t *testing.T) {
	u := &upstream{}
	status := func(name, value string) []byte {
		frame, err := encode(&pgproto3.ParameterStatus{Name: name, Value: value})
		if err != nil {
			t.Fatal(err)
		}
		return frame
	}
	for _, p := range [][2]string{{"server_version", "15"}, {"application_name", "a"}, {"TimeZone", "UTC"}, {"application_name", "b"}} {
		u.setParameter(status(p[0], p[1]))
	}
	want := append(append(status("server_version", "15"), status("application_name", "b")...), status("TimeZone", "UTC")...)
	if got := u.parameters(); string(got) != string(want) {
		t.Errorf("%q, want %q", got, want)
	}
}
