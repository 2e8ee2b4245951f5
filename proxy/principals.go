package proxy

import (
	"context"
	"sync"
	"time"

	"github.com/hiatus-tailor/tailor/catalog"
)

// principalAge is how long a principal is believed where its logins rush in.
const principalAge = time.Second

// principals asks the catalog about each login, except where one role logs in
// so often that what it said a moment ago has to do. It is safe for concurrent
// use.
type principals struct {
	mu    sync.Mutex
	names map[string]*asked
}

// asked is what the catalog said of a name, and how often it was asked.
type asked struct {
	principal *catalog.Principal
	at        time.Time // of the answer
	logins    int       // since
}

// maxNames bounds what is kept of names, which anybody can make up.
const maxNames = 1000

// find returns what is known of a role.
func (p *principals) find(ctx context.Context, source Catalog, name string, now time.Time) (*catalog.Principal, error) {
	p.mu.Lock()
	known := p.names[name]
	fresh := known != nil && now.Sub(known.at) < principalAge
	if fresh {
		if known.logins++; known.logins > rushLogins {
			p.mu.Unlock()
			return known.principal, nil
		}
	}
	p.mu.Unlock()
	found, err := source.Principal(ctx, name)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.names == nil || len(p.names) >= maxNames {
		p.names = make(map[string]*asked)
	}
	logins := 0
	at := now
	if fresh {
		logins, at = known.logins, known.at
	}
	p.names[name] = &asked{found, at, logins}
	return found, nil
}
