package main

import (
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/hiatus-tailor/tailor/anonymize"
	"github.com/hiatus-tailor/tailor/anonymize/disassociate"
	"github.com/hiatus-tailor/tailor/internal/setdata"
)

// person is somebody with demographics and codes, in the data or as shown.
type person struct {
	age       int
	sex, area string
	codes     []string // ascending
}

// dataset are the records with demographics.
type dataset struct {
	records *disassociate.Dataset
	table   *anonymize.Table // age, sex, area
	truth   []map[string]int // by question
}

func load(data string) (*dataset, error) {
	records, err := setdata.Load(filepath.Join(data, "setvalued", "nhds2010-631.txt.gz"))
	if err != nil {
		return nil, err
	}
	d := &dataset{records: records}
	rng := rand.New(rand.NewPCG(3, 3))
	var people []person
	for r := range records.Len() {
		people = append(people, invented(rng, records.AppendCodes(nil, r)))
	}
	for _, q := range questions {
		d.truth = append(d.truth, q.count(people))
	}
	d.table, err = tableOf(people)
	return d, err
}

// drawn is a number in [0, 1) that follows from a text.
func drawn(text string, nth uint64) float64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(text)) // it never fails
	return rand.New(rand.NewPCG(h.Sum64(), nth)).Float64()
}

// invented gives somebody demographics that depend on his codes.
func invented(rng *rand.Rand, codes []string) person {
	slices.Sort(codes)
	p := person{sex: "female", codes: slices.Compact(codes)}
	center, tilt := 0.0, 0.0
	for _, c := range codes {
		center += (15 + 75*drawn(c, 1)) / float64(len(codes))
		tilt += drawn(c, 2) / float64(len(codes))
	}
	p.age = min(max(int(36*rng.Float64()+1.5*center-47+8*rng.NormFloat64()), 0), 99)
	if rng.Float64() < 0.5+1.5*(tilt-0.5) {
		p.sex = "male"
	}
	p.area = fmt.Sprintf("area %d", int(9*math.Pow(rng.Float64(), 1.3)))
	return p
}

func tableOf(people []person) (*anonymize.Table, error) {
	age, err := anonymize.Interval{
		Widths:  []float64{5, 10, 20},
		Upper:   119,
		Integer: true,
	}.Build(
		everyAge(),
		false,
	)
	if err != nil {
		return nil, err
	}
	sex, err := anonymize.NewHierarchy([][]string{{"female"}, {"male"}})
	if err != nil {
		return nil, err
	}
	var paths [][]string
	for i := range 9 {
		paths = append(paths, []string{fmt.Sprintf("area %d", i), fmt.Sprintf("region %d", i/3)})
	}
	area, err := anonymize.NewHierarchy(paths)
	if err != nil {
		return nil, err
	}
	columns := []anonymize.Column{
		{Name: "age", Hierarchy: age},
		{Name: "sex", Hierarchy: sex},
		{Name: "area", Hierarchy: area},
	}
	leaves := make([][]uint32, len(columns))
	for _, p := range people {
		for i, text := range []string{strconv.Itoa(p.age), p.sex, p.area} {
			leaf, _ := columns[i].Hierarchy.Code(text)
			leaves[i] = append(leaves[i], leaf)
		}
	}
	return anonymize.NewTable(columns, leaves, nil)
}

func everyAge() (out []string) {
	for age := range 120 {
		out = append(out, strconv.Itoa(age))
	}
	return out
}

// questions count people by cell.
var questions = []struct {
	name  string
	count func([]person) map[string]int
}{
	{"code, ten years, sex", byCode(func(p person) string { return fmt.Sprint(p.age/10, p.sex) })},
	{
		"code, twenty years, sex, area",
		byCode(func(p person) string { return fmt.Sprint(p.age/20, p.sex, p.area) }),
	},
	{"two codes", byPair(func(person) string { return "" })},
	{
		"two codes, twenty years, sex",
		byPair(func(p person) string { return fmt.Sprint(p.age/20, p.sex) }),
	},
}

func byCode(key func(person) string) func([]person) map[string]int {
	return func(people []person) map[string]int {
		out := make(map[string]int)
		for _, p := range people {
			for _, c := range p.codes {
				out[c+" "+key(p)]++
			}
		}
		return out
	}
}

func byPair(key func(person) string) func([]person) map[string]int {
	return func(people []person) map[string]int {
		out := make(map[string]int)
		for _, p := range people {
			for i, c := range p.codes {
				for _, e := range p.codes[i+1:] {
					out[c+" "+e+" "+key(p)]++
				}
			}
		}
		return out
	}
}

// relativeErrors are over the cells that 100 people or more are in.
func relativeErrors(truth, shown map[string]int) (median, ninety float64) {
	var list []float64
	for cell, n := range truth {
		if n >= 100 {
			list = append(list, math.Abs(float64(shown[cell]-n))/float64(n))
		}
	}
	slices.Sort(list)
	return list[len(list)/2], list[len(list)*9/10]
}
