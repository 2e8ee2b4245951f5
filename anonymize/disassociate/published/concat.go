package published

import "slices"

// Concat puts forms of different records together: the clusters of b follow those of a,
// and keep their chunks. Each promises what it did; the promise of the whole is that of a,
// and b must have made it too.
func Concat(a, b *Form) *Form {
	out := &Form{Promise: a.Promise}
	out.Codes = slices.Concat(a.Codes, b.Codes)
	slices.SortFunc(out.Codes, Code.Compare)
	out.Codes = slices.Compact(out.Codes)
	out.Promise.Sensitive = nil
	for _, f := range []*Form{a, b} {
		number := make([]Item, len(f.Codes))
		for i, code := range f.Codes {
			number[i], _ = out.Item(code)
		}
		// Numbers of both are in the order of their codes, so that what is ascending stays so.
		items := func(from []Item) []Item {
			to := make([]Item, len(from))
			for i, it := range from {
				to[i] = number[it]
			}
			return to
		}
		chunk := func(c *Chunk) Chunk {
			to := Chunk{Codes: items(c.Codes), Sub: make([]SubRecord, len(c.Sub)), Empty: c.Empty}
			for i := range c.Sub {
				to.Sub[i] = SubRecord{Items: items(c.Sub[i].Items), Count: c.Sub[i].Count}
			}
			return to
		}
		base := int32(len(out.Clusters))
		out.Promise.Sensitive = append(out.Promise.Sensitive, items(f.Promise.Sensitive)...)
		for i := range f.Clusters {
			c := Cluster{Size: f.Clusters[i].Size, Items: items(f.Clusters[i].Items)}
			for j := range f.Clusters[i].Record {
				c.Record = append(c.Record, chunk(&f.Clusters[i].Record[j]))
			}
			out.Clusters = append(out.Clusters, c)
		}
		for i := range f.Shared {
			s := SharedChunk{Chunk: chunk(&f.Shared[i].Chunk)}
			for _, cluster := range f.Shared[i].Scope {
				s.Scope = append(s.Scope, base+cluster)
			}
			out.Shared = append(out.Shared, s)
		}
	}
	slices.Sort(out.Promise.Sensitive)
	out.Promise.Sensitive = slices.Compact(out.Promise.Sensitive)
	return out
}
