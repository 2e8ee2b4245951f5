package planner

import (
	"container/list"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/hiatus-tailor/tailor/catalog"
)

// Cache keeps plans of texts that were planned before. It is safe for
// concurrent use. Refusals are not kept.
type Cache struct {
	mu       sync.Mutex
	snapshot *catalog.Snapshot // whose plans it holds
	plans    map[cacheKey]*list.Element
	recent   *list.List // of *cached, the latest used in front
	bytes    int
}

type cacheKey struct {
	statement, database, searchPath, temporary string
	values                                     bool
}

type cached struct {
	key  cacheKey
	plan *Plan
}

// What a cache holds at most, and what a plan takes: for all that it has several of, and
// for the rest.
const (
	cachedBytes     = 8 << 20
	cachedTextBytes = 64 << 10
	planPartBytes   = 64
	planBytes       = 1 << 10
)

// Bytes is about as much memory as the plan takes, with its text; 0 for the zero plan.
func (p *Plan) Bytes() int {
	if p.text == nil {
		return 0
	}
	n := planBytes + len(p.text.statement) + len(p.Asked) +
		planPartBytes*(len(p.text.edits)+len(p.Outputs)+len(p.Uses))
	for _, e := range p.text.edits {
		n += len(e.text)
	}
	return n
}

func (c *cached) bytes() int {
	return c.plan.Bytes() + len(c.key.searchPath) + len(c.key.temporary)
}

// NewCache makes an empty cache.
func NewCache() *Cache {
	return &Cache{plans: make(map[cacheKey]*list.Element), recent: list.New()}
}

// Make is [Make], from memory where the text was planned before in an equal
// session under the same snapshot.
func (c *Cache) Make(statement string, session Session, snapshot *catalog.Snapshot) (*Plan, error) {
	if !snapshot.MayConcern(statement) || len(statement) > cachedTextBytes {
		return Make(statement, session, snapshot)
	}
	key := cacheKey{
		statement: statement, database: session.Database, searchPath: strings.Join(session.SearchPath,
			"\x00"),
		temporary: temporaryKey(session.Temporary), values: session.Values,
	}
	if p := c.find(key, snapshot); p != nil {
		return p, nil
	}
	p, err := Make(statement, session, snapshot)
	if err == nil {
		c.keep(key, p, snapshot)
	}
	return p, err
}

func temporaryKey(relations map[string][]string) string {
	if len(relations) == 0 {
		return ""
	}
	var s strings.Builder
	for _, name := range slices.Sorted(maps.Keys(relations)) {
		s.WriteString(name + "\x01" + strings.Join(relations[name], "\x00") + "\x02")
	}
	return s.String()
}

func (c *Cache) find(key cacheKey, snapshot *catalog.Snapshot) *Plan {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.snapshot != snapshot {
		return nil
	}
	e := c.plans[key]
	if e == nil {
		return nil
	}
	c.recent.MoveToFront(e)
	return e.Value.(*cached).plan
}

// keep adds a plan, which must have been made under the snapshot. Plans of
// another snapshot go.
func (c *Cache) keep(key cacheKey, p *Plan, snapshot *catalog.Snapshot) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.snapshot != snapshot {
		c.snapshot, c.bytes = snapshot, 0
		clear(c.plans)
		c.recent.Init()
	}
	if c.plans[key] != nil {
		return
	}
	kept := &cached{key, p}
	c.plans[key] = c.recent.PushFront(kept)
	c.bytes += kept.bytes()
	for c.bytes > cachedBytes {
		oldest := c.recent.Remove(c.recent.Back()).(*cached)
		delete(c.plans, oldest.key)
		c.bytes -= oldest.bytes()
	}
}
