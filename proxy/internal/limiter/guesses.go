package limiter

import (
	"net"
	"net/netip"
	"sync"
	"time"
)

// Wrong cancel keys that one origin may show: at once, and a second in the long
// run. At this pace guessing the 32 secret bits of one session takes six years
// for an even chance.
const (
	guessesAtOnce    = 100
	guessesPerSecond = 10
)

// maxOrigins bounds what is kept of origins.
const maxOrigins = 10000

// Guesses counts the wrong cancel keys of each origin. It is safe for concurrent
// use.
type Guesses struct {
	mu      sync.Mutex
	origins map[netip.Prefix]debt
}

// debt is what an origin has used up, falling with time.
type debt struct {
	wrong float64
	at    time.Time
}

func (d debt) now(now time.Time) float64 {
	return max(0, d.wrong-guessesPerSecond*now.Sub(d.at).Seconds())
}

// Allowed says whether a key of an origin is to be looked at.
func (g *Guesses) Allowed(from netip.Prefix, now time.Time) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.origins[from].now(now) < guessesAtOnce
}

// Wrong counts a key that no session has.
func (g *Guesses) Wrong(from netip.Prefix, now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.origins == nil {
		g.origins = make(map[netip.Prefix]debt)
	}
	if len(g.origins) >= maxOrigins {
		for other, d := range g.origins {
			if d.now(now) == 0 {
				delete(g.origins, other)
			}
		}
		if len(g.origins) >= maxOrigins {
			clear(g.origins)
		}
	}
	g.origins[from] = debt{1 + g.origins[from].now(now), now}
}

// Origin is the network that an address belongs to: one host of IPv4, one
// subnet of IPv6, within which a host can take any address.
func Origin(address net.Addr) netip.Prefix {
	tcp, ok := address.(*net.TCPAddr)
	if !ok {
		return netip.Prefix{}
	}
	ip := tcp.AddrPort().Addr().Unmap().WithZone("")
	bits := ip.BitLen()
	if ip.Is6() {
		bits = 64
	}
	prefix, _ := ip.Prefix(bits)
	return prefix
}
