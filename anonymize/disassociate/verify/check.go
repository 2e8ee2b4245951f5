package verify

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"

	"github.com/hiatus-tailor/tailor/anonymize/disassociate/published"
)

// Records are original records: lists of codes, repeated codes as often as
// they stand in the record. It must be safe for concurrent use.
type Records interface {
	Len() int
	AppendCodes(dst []string, record int) []string
}

// Check checks a form against the records it stands for. clusterOf says which
// cluster of the form each record is in; it is secret, like the records.
//
// It fails where it cannot check: on a malformed form (*published.MalformedError),
// on a record without a cluster, or when ctx ends. That the form breaks its
// promise is in the report, see [Report.Err].
//
// Cost: linear in the records and chunks; within a chunk in the sets of m
// codes that occur fewer than k times with the other codes of a sub-record,
// which is where a violation could be.
func Check(ctx context.Context, form *published.Form, records Records, clusterOf []int32) (*Report, error) {
	if err := form.Check(); err != nil {
		return nil, err
	}
	c := &checker{form: form, records: records}
	if err := c.group(clusterOf); err != nil {
		return nil, err
	}
	c.readCodes()
	c.sharedOf = make([][]int32, len(form.Clusters))
	for i := range form.Shared {
		for _, p := range form.Shared[i].Scope {
			c.sharedOf[p] = append(c.sharedOf[p], int32(i))
		}
	}
	report := &Report{Records: records.Len(), Clusters: len(form.Clusters), SharedChunks: len(form.Shared)}
	for p := range form.Clusters {
		report.RecordChunks += len(form.Clusters[p].Record)
	}
	clusters, err := c.inParallel(ctx, len(form.Clusters), (*worker).cluster)
	if err != nil {
		return nil, err
	}
	shared, err := c.inParallel(ctx, len(form.Shared), (*worker).shared)
	if err != nil {
		return nil, err
	}
	report.Violations = append(clusters, shared...)
	return report, nil
}

// unknown stands for a code of a record that the form does not have.
const unknown = ^published.Item(0)

// checker holds what all workers read.
type checker struct {
	form     *published.Form
	records  Records
	members  []int32 // records by cluster
	begin    []int   // cluster -> first of its members
	first    map[string]published.Item
	codes    []published.Item // the items of all members, in the order of members
	codesAt  []int            // member -> first of its items
	sharedOf [][]int32
}

// group lists the records of each cluster.
func (c *checker) group(clusterOf []int32) error {
	if len(clusterOf) != c.records.Len() {
		return fmt.Errorf("%d records but %d of them have a cluster", c.records.Len(), len(clusterOf))
	}
	c.begin = make([]int, len(c.form.Clusters)+1)
	for r, p := range clusterOf {
		if p < 0 || int(p) >= len(c.form.Clusters) {
			return fmt.Errorf("record %d is in cluster %d, which does not exist", r, p)
		}
		c.begin[p+1]++
	}
	for p := range c.form.Clusters {
		c.begin[p+1] += c.begin[p]
	}
	next := slices.Clone(c.begin)
	c.members = make([]int32, len(clusterOf))
	for r, p := range clusterOf {
		c.members[next[p]] = int32(r)
		next[p]++
	}
	return nil
}

// readCodes numbers the codes of the records as the form does: the n-th
// occurrence of a code is the item n-1 after the first.
func (c *checker) readCodes() {
	c.first = make(map[string]published.Item, len(c.form.Codes))
	for i, code := range c.form.Codes {
		if code.Nth == 1 {
			c.first[code.Text] = published.Item(i)
		}
	}
	c.codesAt = make([]int, 1, len(c.members)+1)
	var texts []string
	for _, r := range c.members {
		texts = c.records.AppendCodes(texts[:0], int(r))
		at := len(c.codes)
		for _, text := range texts {
			it, ok := c.first[text]
			if !ok {
				it = unknown
			}
			c.codes = append(c.codes, it)
		}
		own := c.codes[at:]
		slices.Sort(own)
		for i := 0; i < len(own); {
			first, nth := own[i], 1
			for i++; i < len(own) && own[i] == first; i++ {
				nth++
				own[i] = c.occurrence(first, nth)
			}
		}
		c.codesAt = append(c.codesAt, len(c.codes))
	}
}

// occurrence is the item of the n-th occurrence of a code in a record.
func (c *checker) occurrence(first published.Item, nth int) published.Item {
	it := int(first) + nth - 1
	if first == unknown || it >= len(c.form.Codes) || c.form.Codes[it].Nth != nth ||
		c.form.Codes[it].Text != c.form.Codes[first].Text {
		return unknown
	}
	return published.Item(it)
}

// inParallel calls check for 0 to n-1 and returns the violations in order.
func (c *checker) inParallel(ctx context.Context, n int, check func(*worker, int)) ([]Violation, error) {
	workers := min(runtime.GOMAXPROCS(0), n)
	found := make([][]Violation, workers)
	var wait sync.WaitGroup
	for i := range workers {
		wait.Go(func() {
			w := newWorker(c)
			for j := i * n / workers; j < (i+1)*n/workers && ctx.Err() == nil; j++ {
				check(w, j)
			}
			found[i] = w.violations
		})
	}
	wait.Wait()
	return slices.Concat(found...), ctx.Err()
}
