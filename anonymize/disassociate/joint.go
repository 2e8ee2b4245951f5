package disassociate

import (
	"cmp"
	"context"
	"slices"
)

// joint is a joint cluster: simple clusters that share chunks.
type joint struct {
	clusters []int32
	virtual  []Item // its item chunks together, ascending
	placed   []Item // codes of its record chunks and shared chunks, ascending
	byCount  []Item // virtual in the order that joint clusters are sorted by
}

// joining runs REFINE over joint clusters ([Terrovitis2012],
// [Loukides2014]).
type joining struct {
	data     *Dataset
	cfg      *Config
	roles    *roles
	clusters []cluster
	vertical *vertical
	support  []int // scratch by item; all zero between calls
	itemSets []int // item -> virtual item chunks that have it
	chunks   []shared
}

// refineJoint joins clusters whose item chunks have codes in common, pair by
// pair and round by round until nothing joins, and moves these codes to shared
// chunks over the joint cluster. It returns the shared chunks.
//
// Codes of a shared chunk are in no record chunk and no other shared chunk of
// the joint cluster, so that k^m-anonymity of the shared chunk is enough. The
// condition of the paper for joining (the codes' share of the records must not
// be below their share of the item chunks) always holds, as the clusters are
// disjoint and each code of an item chunk occurs at least once: it is not
// computed.
func refineJoint(
	ctx context.Context, d *Dataset, cfg *Config, r *roles, clusters []cluster,
	progress func(done int),
) ([]shared, error) {
	j := &joining{
		data: d, cfg: cfg, roles: r, clusters: clusters, vertical: newVertical(cfg, r),
		support: make([]int, len(d.codes)), itemSets: make([]int, len(d.codes)),
	}
	joints := make([]joint, len(clusters))
	for p := range clusters {
		placed := slices.Concat(clusters[p].chunks...)
		slices.Sort(placed)
		joints[p] = joint{clusters: []int32{int32(p)}, placed: placed}
	}
	for {
		before := len(joints)
		j.sort(joints)
		var err error
		if joints, err = j.round(ctx, joints); err != nil {
			return nil, err
		}
		progress(len(clusters) - len(joints))
		if len(joints) == before {
			return j.chunks, nil
		}
	}
}

// sort orders joint clusters so that similar item chunks come to lie side by
// side: codes of many item chunks first, then lexicographically.
func (j *joining) sort(joints []joint) {
	clear(j.itemSets)
	for i := range joints {
		if joints[i].virtual == nil { // new, or without any code to share
			joints[i].virtual = j.virtual(joints[i].clusters)
		}
		for _, it := range joints[i].virtual {
			j.itemSets[it]++
		}
	}
	byCount := func(x, y Item) int {
		return cmp.Or(cmp.Compare(j.itemSets[y], j.itemSets[x]), cmp.Compare(x, y))
	}
	for i := range joints {
		joints[i].byCount = append(joints[i].byCount[:0], joints[i].virtual...)
		slices.SortFunc(joints[i].byCount, byCount)
	}
	slices.SortFunc(joints, func(a, b joint) int {
		if len(a.byCount) == 0 || len(b.byCount) == 0 { // nothing to share: last
			return cmp.Or(
				cmp.Compare(len(b.byCount), len(a.byCount)),
				cmp.Compare(a.clusters[0], b.clusters[0]),
			)
		}
		return cmp.Or(
			slices.CompareFunc(a.byCount, b.byCount, byCount),
			cmp.Compare(a.clusters[0], b.clusters[0]),
		)
	})
}

// virtual is the union of the item chunks of clusters, without sensitive
// codes, ascending.
func (j *joining) virtual(clusters []int32) []Item {
	var union []Item
	for _, p := range clusters {
		for _, it := range j.clusters[p].items {
			if !j.roles.sensitive[it] {
				union = append(union, it)
			}
		}
	}
	slices.Sort(union)
	return slices.Compact(union)
}

// round tries each pair of neighbours once. A joint cluster that has just been
// made waits for the next round.
func (j *joining) round(ctx context.Context, joints []joint) ([]joint, error) {
	var next []joint
	for i := 0; i < len(joints); i++ {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if i+1 < len(joints) {
			if joined, ok := j.join(&joints[i], &joints[i+1]); ok {
				next = append(next, joined)
				i++
				continue
			}
		}
		next = append(next, joints[i])
	}
	return next, nil
}

// join makes one joint cluster of two, if they have codes to share.
func (j *joining) join(a, b *joint) (joint, bool) {
	clusters := slices.Concat(a.clusters, b.clusters)
	placed := slices.Concat(a.placed, b.placed)
	slices.Sort(placed)
	placed = slices.Compact(placed)
	codes := j.refining(a, b, clusters, placed)
	if len(codes) == 0 {
		return joint{}, false
	}
	for _, chunk := range j.project(clusters, codes) {
		j.chunks = append(j.chunks, shared{scope: clusters, codes: chunk})
	}
	for _, p := range clusters {
		j.clusters[p].removeItems(codes)
	}
	placed = append(placed, codes...)
	slices.Sort(placed)
	return joint{clusters: clusters, placed: placed}, true
}

// refining lists the codes, ascending, that two joint clusters can share: in
// the item chunks of both, placed nowhere else, of k records in all. A code is
// left out where a cluster would lose the last code of an item chunk that it
// needs.
func (j *joining) refining(a, b *joint, clusters []int32, placed []Item) []Item {
	var codes []Item
	for _, it := range a.virtual {
		if _, both := slices.BinarySearch(b.virtual, it); !both {
			continue
		}
		if _, elsewhere := slices.BinarySearch(placed, it); !elsewhere {
			codes = append(codes, it)
		}
	}
	if len(codes) == 0 {
		return nil
	}
	for _, p := range clusters {
		for i, it := range j.clusters[p].items {
			j.support[it] += int(j.clusters[p].support[i])
		}
	}
	codes = slices.DeleteFunc(codes, func(it Item) bool { return j.support[it] < j.cfg.K })
	for i := 0; i < len(clusters) && len(codes) > 0; i++ {
		least, leaves := j.leastOfItemChunk(clusters[i], codes)
		if leaves {
			codes = slices.DeleteFunc(codes, func(it Item) bool { return it == least })
		}
	}
	for _, p := range clusters {
		for _, it := range j.clusters[p].items {
			j.support[it] = 0
		}
	}
	return codes
}

// leastOfItemChunk says whether a cluster would lose an item chunk that it
// needs if codes left it, and which of its codes is then best kept: the one
// with the least support in the joint cluster.
func (j *joining) leastOfItemChunk(p int32, codes []Item) (least Item, needed bool) {
	c := &j.clusters[p]
	if len(c.items) == 0 || c.mayLeave(1, j.cfg) {
		return 0, false
	}
	for i, it := range c.items {
		if _, leaves := slices.BinarySearch(codes, it); !leaves {
			return 0, false
		}
		if i == 0 || j.support[it] < j.support[least] {
			least = it
		}
	}
	return least, true
}

// project runs VERPART on the records of clusters, projected on codes. Records
// with none of the codes do not matter for k^m-anonymity and are left out.
func (j *joining) project(clusters []int32, codes []Item) [][]Item {
	var rows [][]Item
	for _, p := range clusters {
		for _, r := range j.clusters[p].records {
			var row []Item
			for _, it := range j.data.Items(int(r)) {
				if _, in := slices.BinarySearch(codes, it); in {
					row = append(row, it)
				}
			}
			if len(row) > 0 {
				rows = append(rows, row)
			}
		}
	}
	v := j.vertical
	v.cols.reset(len(rows))
	for i, row := range rows {
		for _, it := range row {
			v.cols.add(i, it)
		}
	}
	all := make([]int32, len(v.cols.items))
	for i := range all {
		all[i] = int32(i)
	}
	var chunks [][]Item
	for _, chunk := range v.chunks(all) {
		chunks = append(chunks, v.itemsOf(chunk))
	}
	return chunks
}
