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
func Check(
	ctx context.Context, form *published.Form, records Records, clusterOf []int32,
) (*Report, error) {
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
	report := &Report{
		Records: records.Len(), Clusters: len(form.Clusters),
		SharedChunks: len(form.Shared),
	}
	for p := range form.Clusters {
		report.RecordChunks += len(form.Clusters[p].Record)
	}
	clusters, err := c.inParallel(ctx, len(form.Clusters), (*worker).cluster)
	if err != nil {
		return nil, err
	}
	c.gatherShared(clusters)
	shared, err := c.inParallel(ctx, len(form.Shared), (*worker).shared)
	if err != nil {
		return nil, err
	}
	for _, w := range slices.Concat(clusters, shared) {
		report.Violations = append(report.Violations, w.violations...)
	}
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
	inShared []occurrence // by shared chunk
	sharedAt []int        // shared chunk -> first of its occurrences
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
				own[i] = c.nthItem(first, nth)
			}
		}
		c.codesAt = append(c.codesAt, len(c.codes))
	}
}

// nthItem is the item of the n-th occurrence of a code in a record.
func (c *checker) nthItem(first published.Item, nth int) published.Item {
	it := int(first) + nth - 1
	if first == unknown || it >= len(c.form.Codes) || c.form.Codes[it].Nth != nth ||
		c.form.Codes[it].Text != c.form.Codes[first].Text {
		return unknown
	}
	return published.Item(it)
}

// gatherShared sorts what the workers found for shared chunks by chunk. What a
// record has in a chunk stays together.
func (c *checker) gatherShared(workers []*worker) {
	c.sharedAt = make([]int, len(c.form.Shared)+1)
	for _, w := range workers {
		for _, o := range w.loose {
			c.sharedAt[o.chunk+1]++
		}
	}
	for s := range c.form.Shared {
		c.sharedAt[s+1] += c.sharedAt[s]
	}
	next := slices.Clone(c.sharedAt)
	c.inShared = make([]occurrence, c.sharedAt[len(c.form.Shared)])
	for _, w := range workers {
		for _, o := range w.loose {
			c.inShared[next[o.chunk]] = o
			next[o.chunk]++
		}
	}
}

// inParallel calls check for 0 to n-1, each worker for a range of them, and
// returns the workers in the order of their ranges.
func (c *checker) inParallel(
	ctx context.Context, n int, check func(*worker, int),
) ([]*worker, error) {
	workers := make([]*worker, min(runtime.GOMAXPROCS(0), n))
	var wait sync.WaitGroup
	for i := range workers {
		wait.Go(func() {
			w := newWorker(c)
			for j := i * n / len(workers); j < (i+1)*n/len(workers) && ctx.Err() == nil; j++ {
				check(w, j)
			}
			workers[i] = w
		})
	}
	wait.Wait()
	return workers, ctx.Err()
}
