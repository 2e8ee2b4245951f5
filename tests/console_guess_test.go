package tests

import (
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
)

// TestGuessingAtARoleLocksNobodyElseOut. Attacker: somebody at another address, who shows
// wrong passwords for an administrator. Property: the administrator signs in.
func TestGuessingAtARoleLocksNobodyElseOut(t *testing.T) {
	_, url := shared.withConsole(t)
	from := func(address, password string) int {
		dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}
		client := &http.Client{Transport: &http.Transport{
			DialContext:       dialer.DialContext,
			DisableKeepAlives: true,
		}}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"api/login",
			strings.NewReader(fmt.Sprintf(`{"user": "dba", "password": %q}`, password)))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		response, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		return response.StatusCode
	}
	last := 0
	for range 8 {
		last = from("127.0.0.2", "guess")
	}
	if last != http.StatusTooManyRequests {
		t.Errorf("after many guesses: %d", last)
	}
	if code := from("127.0.0.3", "dba"); code != http.StatusOK {
		t.Errorf("the administrator: %d", code)
	}
}
