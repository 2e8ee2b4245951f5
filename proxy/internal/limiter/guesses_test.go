package limiter

import (
	"net"
	"testing"
	"time"
)

func TestWrongKeysAreCountedByOriginAndForgiven(t *testing.T) {
	var g Guesses
	now := time.Now()
	guesser := Origin(&net.TCPAddr{IP: net.ParseIP("2001:db8::1"), Port: 1})
	neighbour := Origin(&net.TCPAddr{IP: net.ParseIP("2001:db8::2"), Port: 1})
	honest := Origin(&net.TCPAddr{IP: net.ParseIP("192.0.2.1"), Port: 1})
	if guesser != neighbour || guesser == honest {
		t.Fatalf("%v %v %v", guesser, neighbour, honest)
	}
	for range guessesAtOnce {
		if !g.Allowed(guesser, now) {
			t.Fatal("refused too early")
		}
		g.Wrong(guesser, now)
	}
	if g.Allowed(neighbour, now) || !g.Allowed(honest, now) {
		t.Error("the guesser is let in, or somebody else is kept out")
	}
	if !g.Allowed(guesser, now.Add(time.Second)) {
		t.Error("a second changes nothing")
	}
	for i := range maxOrigins + 10 {
		g.Wrong(Origin(&net.TCPAddr{IP: net.IPv4(10, 0, byte(i>>8), byte(i))}), now)
	}
	if len(g.origins) > maxOrigins {
		t.Errorf("%d origins are kept", len(g.origins))
	}
}
