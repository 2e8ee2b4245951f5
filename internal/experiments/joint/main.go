// Command joint measures what can be computed from codes that are published together
// with demographics.
package main

import (
	"context"
	"flag"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/hiatus-tailor/tailor/anonymize"
	"github.com/hiatus-tailor/tailor/anonymize/disassociate"
	"github.com/hiatus-tailor/tailor/internal/setdata"
)

type person struct {
	age    int
	sex    string
	region string
	codes  []string
}

func hashed(s string, n uint64) float64 {
	h := fnv.New64a()
	fmt.Fprintf(h, "%s %d", s, n)
	return rand.New(rand.NewPCG(h.Sum64(), n)).Float64()
}

func people(d *disassociate.Dataset) []person {
	rng := rand.New(rand.NewPCG(3, 3))
	var out []person
	for r := range d.Len() {
		codes := d.AppendCodes(nil, r)
		center, tilt := 0.0, 0.0
		for _, c := range codes {
			center += 15 + 75*hashed(c, 1)
			tilt += hashed(c, 2)
		}
		center /= float64(len(codes))
		tilt /= float64(len(codes))
		age := int(0.4*rng.Float64()*90 + 0.6*(center+1.5*(center-52)) + 8*rng.NormFloat64())
		p := person{age: min(max(age, 0), 99), sex: "F", codes: codes}
		if rng.Float64() < 0.5+1.5*(tilt-0.5) {
			p.sex = "M"
		}
		p.region = fmt.Sprintf("R%d", min(8, int(9*math.Pow(rng.Float64(), 1.3))))
		out = append(out, p)
	}
	return out
}

func table(ps []person) (*anonymize.Table, error) {
	var ages []string
	for a := range 120 {
		ages = append(ages, strconv.Itoa(a))
	}
	age, err := anonymize.Interval{Widths: []float64{5, 10, 20}, Lower: 0, Upper: 119, Integer: true}.Build(ages, false)
	if err != nil {
		return nil, err
	}
	sex, err := anonymize.Listed([][]string{{"F", "*"}, {"M", "*"}}, nil, false)
	if err != nil {
		return nil, err
	}
	var paths [][]string
	for i := range 9 {
		paths = append(paths, []string{fmt.Sprintf("R%d", i), fmt.Sprintf("area %d", i/3), "*"})
	}
	region, err := anonymize.Listed(paths, nil, false)
	if err != nil {
		return nil, err
	}
	leaves := make([][]uint32, 3)
	for i := range ps {
		a, _ := age.Code(strconv.Itoa(ps[i].age))
		s, _ := sex.Code(ps[i].sex)
		r, _ := region.Code(ps[i].region)
		leaves[0] = append(leaves[0], a)
		leaves[1] = append(leaves[1], s)
		leaves[2] = append(leaves[2], r)
	}
	return anonymize.NewTable([]anonymize.Column{{Name: "age", Hierarchy: age}, {Name: "sex", Hierarchy: sex}, {Name: "region", Hierarchy: region}}, leaves, nil)
}

// cells counts code × band × sex, pairs of codes, pair × sex.
func cells(ps []person, only map[string]bool) (single, region, pairs, pairsex map[string]int) {
	single, region, pairs, pairsex = make(map[string]int), make(map[string]int), make(map[string]int), make(map[string]int)
	for _, p := range ps {
		codes := slices.Clone(p.codes)
		slices.Sort(codes)
		codes = slices.Compact(codes)
		for i, c := range codes {
			single[fmt.Sprint(c, p.age/10, p.sex)]++
			region[fmt.Sprint(c, p.age/20, p.sex, p.region)]++
			if only != nil && !only[c] {
				continue
			}
			for _, e := range codes[i+1:] {
				if only == nil || only[e] {
					pairs[c+" "+e]++
					pairsex[c+" "+e+p.sex+fmt.Sprint(p.age/20)]++
				}
			}
		}
	}
	return
}

func errorsOf(truth, got map[string]int) string {
	var errs []float64
	for key, n := range truth {
		if n >= 100 {
			errs = append(errs, math.Abs(float64(got[key]-n))/float64(n))
		}
	}
	slices.Sort(errs)
	if len(errs) == 0 {
		return "none"
	}
	return fmt.Sprintf("n=%d med %.1f p90 %.1f", len(errs), 100*errs[len(errs)/2], 100*errs[len(errs)*9/10])
}

func main() {
	data := flag.String("data", "", "")
	k := flag.Int("k", 5, "")
	m := flag.Int("m", 2, "")
	flag.Parse()
	ctx := context.Background()
	d, err := setdata.Load(filepath.Join(*data, "setvalued", "nhds2010-631.txt.gz"))
	if err != nil {
		panic(err)
	}
	ps := people(d)
	t, err := table(ps)
	if err != nil {
		panic(err)
	}
	ts, tr, tp, tx := cells(ps, nil)
	fmt.Println("people", len(ps), "singles≥100:", errorsOf(ts, ts), errorsOf(tr, tr), errorsOf(tp, tp), errorsOf(tx, tx))
	rng := rand.New(rand.NewPCG(9, 9))
	for _, mc := range []int{10, 16, 25, 50, 100} {
	for _, g := range []int{100, 200, 100000} {
		started := time.Now()
		var p *anonymize.Partition
		if g > len(ps) {
			p = anonymize.NewPartition(t)
		} else if p, err = anonymize.Root(ctx, t, anonymize.RootPlan{Requirements: []anonymize.Requirement{anonymize.BlockK{K: g}}}); err != nil {
			panic(err)
		}
		sk := p.Sketch()
		vals := make([]*anonymize.Values, 3)
		for i := range vals {
			vals[i] = sk.Draw(i, t.Margin(i, *k, 1), rng)
		}
		// order of groups: by sex, age, region label
		order := make([]int, p.Blocks())
		for i := range order {
			order[i] = i
		}
		lo := func(b, c int) [2]uint32 { n := p.Cover(uint32(b), c); return first(t.Columns()[c].Hierarchy, n) }
		slices.SortFunc(order, func(a, b int) int {
			for _, c := range []int{1, 0, 2} {
				x, y := lo(a, c), lo(b, c)
				if r := slices.Compare(x[:], y[:]); r != 0 {
					return r
				}
			}
			return 0
		})
		groups := make([][]int32, p.Blocks())
		place := make([]int, p.Blocks())
		for i, b := range order {
			place[b] = i
		}
		for r, tup := range t.TupleOfRow() {
			b := place[p.BlockOf()[tup]]
			groups[b] = append(groups[b], int32(r))
		}
		made := time.Since(started)
		cfg := disassociate.Default(*k, *m)
		cfg.Groups, cfg.MayBeEmpty, cfg.MaxCluster = groups, true, mc
		fmt.Println("max cluster", mc)
		res, err := disassociate.Disassociate(ctx, d, cfg, rng, nil)
		if err != nil {
			panic(err)
		}
		took := time.Since(started)
		blockOfCluster := make([]int, len(res.Form.Clusters))
		for r, c := range res.ClusterOf {
			blockOfCluster[c] = int(p.BlockOf()[t.TupleOfRow()[r]])
		}
		records := res.Form.Reconstruct(rng)
		var shown []person
		taken := make([]int, p.Blocks())
		at := 0
		perm := make([][]int, p.Blocks())
		for b := range perm {
			perm[b] = rng.Perm(p.Rows(uint32(b)))
		}
		for c := range res.Form.Clusters {
			b := blockOfCluster[c]
			for range res.Form.Clusters[c].Size {
				i := perm[b][taken[b]]
				taken[b]++
				var q person
				q.age, _ = strconv.Atoi(vals[0].Texts[vals[0].Of[b][i]])
				q.sex = vals[1].Texts[vals[1].Of[b][i]]
				q.region = vals[2].Texts[vals[2].Of[b][i]]
				for _, it := range records[at] {
					q.codes = append(q.codes, res.Form.Codes[it].Text)
				}
				at++
				shown = append(shown, q)
			}
		}
		gs, gr, gp, gx := cells(shown, nil)
		fmt.Printf("g=%d groups=%d clusters=%d loss=%.4f made %.1fs all %.1fs\n  code×band×sex: %s\n  code×20y×sex×region: %s\n  pairs: %s\n  pairs×20y×sex: %s\n", g, p.Blocks(), len(res.Form.Clusters), p.Loss([]int{0, 1, 2}), made.Seconds(), took.Seconds(),
			errorsOf(ts, gs), errorsOf(tr, gr), errorsOf(tp, gp), errorsOf(tx, gx))
	}
	}
}

func first(h *anonymize.Hierarchy, n anonymize.Node) [2]uint32 {
	a, b := h.Range(n)
	return [2]uint32{a, b}
}
