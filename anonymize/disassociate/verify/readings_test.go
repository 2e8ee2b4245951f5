package verify_test

import (
	"slices"

	"github.com/hiatus-tailor/tailor/anonymize/disassociate/published"
)

// readings decides Guarantee 1 by the definition: it tries the ways to read a
// small form as a data set.
type readings struct {
	form  *published.Form
	begin []int   // cluster -> first of its records
	open  [][]int // record -> the items it has got so far
	want  []published.Item
	p     int // the cluster that S was seen in
}

// dealt is a chunk with the records that it is dealt to.
type dealt struct {
	chunk   *published.Chunk
	records []int
}

func newReadings(f *published.Form) *readings {
	r := &readings{form: f, begin: make([]int, len(f.Clusters)+1)}
	for p := range f.Clusters {
		r.begin[p+1] = r.begin[p] + f.Clusters[p].Size
	}
	return r
}

// allow says whether some reading has k records of cluster p that hold all of
// set, and no empty record unless there may be.
func (r *readings) allow(p int, set []published.Item) bool {
	r.p, r.want = p, nil
	for _, it := range set {
		if !slices.Contains(r.form.Clusters[p].Items, it) {
			r.want = append(r.want, it)
		} // a code of the item chunk may be in all records of p
	}
	r.open = make([][]int, r.begin[len(r.form.Clusters)])
	var relevant, rest []dealt
	sort := func(d dealt) {
		if slices.ContainsFunc(d.chunk.Codes, func(it published.Item) bool {
			return slices.Contains(r.want, it)
		}) {
			relevant = append(relevant, d)
		} else {
			rest = append(rest, d)
		}
	}
	for q := range r.form.Clusters {
		for i := range r.form.Clusters[q].Record {
			sort(dealt{&r.form.Clusters[q].Record[i], r.span(q)})
		}
	}
	for s := range r.form.Shared {
		var records []int
		for _, q := range r.form.Shared[s].Scope {
			records = append(records, r.span(int(q))...)
		}
		sort(dealt{&r.form.Shared[s].Chunk, records})
	}
	// Chunks outside p's reach have codes of S as well; they matter only for
	// what p's records can hold, which they do not change.
	return r.deal(append(relevant, rest...), nil)
}

func (r *readings) span(q int) []int {
	var records []int
	for i := r.begin[q]; i < r.begin[q+1]; i++ {
		records = append(records, i)
	}
	return records
}

// deal deals chunks one after the other. seen lists the items of the chunks
// that have been dealt to p.
func (r *readings) deal(chunks []dealt, seen []published.Item) bool {
	if r.holders(seen) < r.form.Promise.K {
		return false
	}
	if r.complete(seen) {
		return true
	}
	if len(chunks) == 0 {
		return false
	}
	d := chunks[0]
	if slices.Contains(d.records, r.begin[r.p]) {
		seen = slices.Concat(seen, d.chunk.Codes)
	}
	counts := make([]int, len(d.chunk.Sub)+1)
	for i := range d.chunk.Sub {
		counts[i] = d.chunk.Sub[i].Count
	}
	counts[len(d.chunk.Sub)] = d.chunk.Empty
	return r.place(d, counts, 0, chunks[1:], seen)
}

// place gives the remaining sub-records of a chunk to its records from at on.
func (r *readings) place(
	d dealt, counts []int, at int, chunks []dealt, seen []published.Item,
) bool {
	if at == len(d.records) {
		return r.deal(chunks, seen)
	}
	record := d.records[at]
	before := r.open[record]
	for i := range counts {
		if counts[i] == 0 {
			continue
		}
		counts[i]--
		if i < len(d.chunk.Sub) {
			for _, it := range d.chunk.Sub[i].Items {
				r.open[record] = append(slices.Clip(r.open[record]), int(it))
			}
		}
		done := r.place(d, counts, at+1, chunks, seen)
		r.open[record] = before
		counts[i]++
		if done {
			return true
		}
	}
	return false
}

// holders counts the records of p that hold what S has of the items seen.
func (r *readings) holders(seen []published.Item) int {
	n := 0
records:
	for _, record := range r.span(r.p) {
		for _, it := range r.want {
			if slices.Contains(seen, it) && !slices.Contains(r.open[record], int(it)) {
				continue records
			}
		}
		n++
	}
	return n
}

// complete says whether S has been dealt to k records and no record is empty,
// so that it does not matter how the other chunks are dealt.
func (r *readings) complete(seen []published.Item) bool {
	for _, it := range r.want {
		if !slices.Contains(seen, it) {
			return false
		}
	}
	for q := range r.form.Clusters {
		if r.form.Promise.MayBeEmpty || len(r.form.Clusters[q].Items) > 0 {
			continue // its codes can fill any record
		}
		for _, record := range r.span(q) {
			if len(r.open[record]) == 0 {
				return false
			}
		}
	}
	return true
}
