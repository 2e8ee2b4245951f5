package published

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// Item numbers a code of a [Form]: an index into its Codes.
type Item = uint32

// Code is one code of a record: its text, and which occurrence in the record
// it is, from 1. A record that holds a code three times holds the three codes
// (c, 1), (c, 2) and (c, 3), so that multisets are sets ([Loukides2014]).
type Code struct {
	Text string
	Nth  int
}

// Compare orders codes by text, then occurrence.
func (c Code) Compare(other Code) int {
	if d := strings.Compare(c.Text, other.Text); d != 0 {
		return d
	}
	return c.Nth - other.Nth
}

// Promise is what a form claims. Package verify checks it.
type Promise struct {
	// K is the least number of candidate records, at least 2.
	K int
	// M is the number of codes of a record that an attacker knows, at least 1.
	M int
	// Diversity is the least size of a cluster that holds a sensitive code:
	// the probability that a record holds it is at most 1/Diversity. 1 where
	// there are no sensitive codes.
	Diversity int
	// StrictDiversity holds the bound even for a reader who knows how many
	// records of the cluster hold the sensitive code.
	StrictDiversity bool
	// MayBeEmpty says that there are records without codes, or may be.
	MayBeEmpty bool
	// Sensitive lists the sensitive codes, ascending.
	Sensitive []Item
}

// Form is a published set-valued data set. It is immutable once made and safe
// for concurrent reading.
type Form struct {
	Promise  Promise
	Codes    []Code // ascending, no code twice
	Clusters []Cluster
	Shared   []SharedChunk
}

// Cluster stands for Size records.
type Cluster struct {
	Size   int
	Record []Chunk
	Items  []Item // the item chunk, ascending
}

// Chunk is a multiset of sub-records over Codes. Sub lists the distinct
// sub-records that are not empty; Empty counts the others.
type Chunk struct {
	Codes []Item // ascending
	Sub   []SubRecord
	Empty int
}

// SubRecord is a set of codes that Count records of the chunk hold.
type SubRecord struct {
	Items []Item // ascending, not empty
	Count int
}

// SharedChunk is a chunk over all records of the clusters of its Scope.
type SharedChunk struct {
	Scope []int32 // indexes of clusters, ascending
	Chunk
}

// spreads says whether reconstruction gives the code of a shared chunk to each cluster
// of its scope before it gives it to one of them twice: each had it in its item chunk.
func (s *SharedChunk) spreads() bool { return len(s.Codes) == 1 && s.NonEmpty() >= len(s.Scope) }

// maxRecords is the largest number of records of a form.
const maxRecords = math.MaxInt32

// Records is the number of records that the form stands for.
func (f *Form) Records() int {
	n := 0
	for i := range f.Clusters {
		n += f.Clusters[i].Size
	}
	return n
}

// Item returns the number of a code and whether the form has it.
func (f *Form) Item(c Code) (Item, bool) {
	i, ok := slices.BinarySearchFunc(f.Codes, c, Code.Compare)
	return Item(i), ok
}

// NonEmpty is the number of sub-records with at least one code.
func (c *Chunk) NonEmpty() int {
	n := 0
	for i := range c.Sub {
		n += c.Sub[i].Count
	}
	return n
}

// Support is the number of sub-records that hold every item of set, which is
// ascending. Every sub-record holds the empty set.
func (c *Chunk) Support(set []Item) int {
	if len(set) == 0 {
		return c.NonEmpty() + c.Empty
	}
	n := 0
	for i := range c.Sub {
		if holdsAll(c.Sub[i].Items, set) {
			n += c.Sub[i].Count
		}
	}
	return n
}

// holdsAll says whether ascending items contain all of an ascending set.
func holdsAll(items, set []Item) bool {
	if len(set) > len(items) {
		return false
	}
	i := 0
	for _, want := range set {
		for i < len(items) && items[i] < want {
			i++
		}
		if i == len(items) || items[i] != want {
			return false
		}
		i++
	}
	return true
}

// holdsAny says whether ascending items contain at least one of an ascending
// set.
func holdsAny(items, set []Item) bool {
	for i, j := 0, 0; i < len(items) && j < len(set); {
		switch {
		case items[i] == set[j]:
			return true
		case items[i] < set[j]:
			i++
		default:
			j++
		}
	}
	return false
}

// MalformedError says why a form cannot be read. It quotes no code.
type MalformedError struct {
	Where, Reason string
}

func (e *MalformedError) Error() string {
	return fmt.Sprintf("malformed published form: %s: %s", e.Where, e.Reason)
}

// Check asserts that the form is well shaped: numbers in range, lists
// ascending, sub-records within the codes of their chunk and as many as the
// records they stand for. It says nothing about privacy. The error is a
// *[MalformedError].
func (f *Form) Check() error {
	if f.Promise.K < 2 || f.Promise.M < 1 || f.Promise.Diversity < 1 {
		return &MalformedError{"promise", "needs k of at least 2, m and diversity of at least 1"}
	}
	for i := range f.Codes {
		if f.Codes[i].Nth < 1 || i > 0 && f.Codes[i-1].Compare(f.Codes[i]) >= 0 {
			return &MalformedError{"codes", "not ascending, or an occurrence below 1"}
		}
	}
	if !f.ascending(f.Promise.Sensitive) {
		return &MalformedError{"sensitive codes", "not ascending or out of range"}
	}
	records := 0
	for i := range f.Clusters {
		c := &f.Clusters[i]
		where := fmt.Sprintf("cluster %d", i)
		if c.Size < 1 {
			return &MalformedError{where, "holds no records"}
		}
		if records += c.Size; c.Size > maxRecords || records > maxRecords {
			return &MalformedError{where, "more records than a form can hold"}
		}
		if !f.ascending(c.Items) {
			return &MalformedError{where, "item chunk not ascending or out of range"}
		}
		for j := range c.Record {
			if err := f.checkChunk(&c.Record[j], c.Size, where); err != nil {
				return err
			}
		}
	}
	for i := range f.Shared {
		s := &f.Shared[i]
		where := fmt.Sprintf("shared chunk %d", i)
		slots := 0
		for j, p := range s.Scope {
			if p < 0 || int(p) >= len(f.Clusters) || j > 0 && s.Scope[j-1] >= p {
				return &MalformedError{where, "scope not ascending or out of range"}
			}
			slots += f.Clusters[p].Size
		}
		if err := f.checkChunk(&s.Chunk, slots, where); err != nil {
			return err
		}
	}
	return nil
}

func (f *Form) checkChunk(c *Chunk, slots int, where string) error {
	if len(c.Codes) == 0 || !f.ascending(c.Codes) {
		return &MalformedError{where, "a chunk without codes, or codes not ascending or out of range"}
	}
	for i := range c.Sub {
		s := &c.Sub[i]
		if s.Count < 1 || s.Count > slots || len(s.Items) == 0 || !f.ascending(s.Items) ||
			!holdsAll(c.Codes, s.Items) {
			return &MalformedError{where, "a sub-record is empty, outside its chunk or not ascending"}
		}
		if i > 0 && slices.Compare(c.Sub[i-1].Items, s.Items) >= 0 {
			return &MalformedError{where, "sub-records not ascending"}
		}
	}
	if c.Empty < 0 || c.Empty > slots || c.NonEmpty()+c.Empty != slots {
		return &MalformedError{where, "sub-records of a chunk do not add up to the records"}
	}
	return nil
}

func (f *Form) ascending(items []Item) bool {
	for i, it := range items {
		if int(it) >= len(f.Codes) || i > 0 && items[i-1] >= it {
			return false
		}
	}
	return true
}
