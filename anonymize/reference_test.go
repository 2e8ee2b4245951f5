package anonymize_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/hiatus-tailor/tailor/anonymize"
)

// likeness are models that hold classes against a reference.
func likeness(to *anonymize.Reference) []anonymize.ValueModel {
	return []anonymize.ValueModel{
		anonymize.BlockTCloseness{T: 0.3, To: to},
		anonymize.BlockTCloseness{T: 0.2, Ordered: true, To: to},
		anonymize.BlockBetaLikeness{Beta: 1.5, To: to},
		anonymize.BlockBetaLikeness{Beta: 1.5, Enhanced: true, To: to},
		anonymize.BlockDisclosure{Delta: 1.5, To: to},
	}
}

// draw makes a histogram of some of the codes below a number.
func draw(r *rand.Rand, codes int) (values, counts []uint32) {
	for _, v := range r.Perm(codes)[:1+r.IntN(codes)] {
		values, counts = append(values, uint32(v)), append(counts, 1+uint32(r.IntN(5)))
	}
	return values, counts
}

// joined is the histogram of two blocks together.
func joined(v, n, w, m []uint32) (values, counts []uint32) {
	sum := make(map[uint32]uint32)
	for i := range v {
		sum[v[i]] += n[i]
	}
	for i := range w {
		sum[w[i]] += m[i]
	}
	for value, count := range sum {
		values, counts = append(values, value), append(counts, count)
	}
	return values, counts
}

// TestModelsOfLikenessAreKeptByUnions joins blocks of values of which the reference lacks some
// and has some off its scale (docs/decisions/models.md).
func TestModelsOfLikenessAreKeptByUnions(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	met := make(map[string]int)
	for range 400 {
		codes := 2 + r.IntN(5)
		shares, total := make([]float64, codes), 0.0
		for i := range shares {
			shares[i] = float64(1 + r.IntN(4))
			total += shares[i]
		}
		for i := range shares {
			shares[i] /= total
		}
		for _, model := range likeness(anonymize.NewReference(shares, r.IntN(2), codes)) {
			for range 100 {
				v, n := draw(r, codes+r.IntN(2)*r.IntN(2))
				w, m := draw(r, codes+r.IntN(2)*r.IntN(2))
				if !model.Holds(v, n) || !model.Holds(w, m) {
					continue
				}
				met[model.String()]++
				if u, sum := joined(v, n, w, m); !model.Holds(u, sum) {
					t.Fatalf("%s: %v of %v and %v of %v meet it, both together do not", model, n, v, m, w)
				}
			}
		}
	}
	for model, n := range met {
		if n < 200 {
			t.Errorf("%s: %d pairs: not a test", model, n)
		}
	}
	if len(met) != 5 {
		t.Errorf("%d models", len(met))
	}
}

// TestOrderedDistanceIsWhatItCostsToMoveTheMass compares with the definition, by place: on the
// scale as the paper has it, off it as far as the scale is long.
func TestOrderedDistanceIsWhatItCostsToMoveTheMass(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	off := 0
	for range 3000 {
		codes := 1 + r.IntN(12)
		first := r.IntN(2)
		shares, total := make([]float64, codes), 0.0
		for i := range shares {
			shares[i] = float64(r.IntN(4))
			total += shares[i]
		}
		if total == 0 {
			continue
		}
		for i := range shares {
			shares[i] /= total
		}
		values, counts := draw(r, codes+r.IntN(3))
		want := transport(shares, first, values, counts)
		if want >= 0.999 || want <= 0.001 {
			continue
		}
		if first > 0 && shares[0] > 0 {
			off++
		}
		of := func(limit float64) bool {
			to := anonymize.NewReference(shares, first, codes)
			return anonymize.BlockTCloseness{T: limit, Ordered: true, To: to}.Holds(values, counts)
		}
		if !of(want+1e-9) || of(want-1e-9) {
			t.Fatalf("distance of %v of %v from %v, scale from %d: wants %g", counts, values, shares,
				first, want)
		}
	}
	if off < 200 {
		t.Errorf("%d references with a share off the scale: not a test", off)
	}
}

// transport is the distance place by place.
func transport(shares []float64, first int, values, counts []uint32) float64 {
	q := make(map[uint32]float64)
	total := 0.0
	for i := range values {
		total += float64(counts[i])
	}
	for i, v := range values {
		q[v] = float64(counts[i]) / total
	}
	on, whole, apart := 0.0, 0.0, 0.0
	for v := range uint32(len(shares) + 3) {
		p := 0.0
		if int(v) < len(shares) {
			p = shares[v]
		}
		if int(v) >= first && int(v) < len(shares) {
			on += q[v]
			whole += p
		} else {
			apart += math.Abs(q[v]-p) / 2
		}
	}
	apart += math.Abs(on-whole) / 2
	places := len(shares) - first
	if places < 2 || on == 0 || whole == 0 {
		return apart
	}
	carried := 0.0
	for v := first; v < len(shares); v++ {
		carried += q[uint32(v)] - shares[v]*on/whole
		apart += math.Abs(carried) / float64(places-1)
	}
	return apart
}

func TestValuesThatTheReferenceLacks(t *testing.T) {
	to := anonymize.NewReference([]float64{0, 0.5, 0.5}, 1, 3)
	for i, want := range []bool{true, true, false, false, false} {
		values, counts := []uint32{1, 2, 7}, []uint32{4, 4, 1}
		if got := likeness(to)[i].Holds(values, counts); got != want {
			t.Errorf("%s: says %v", likeness(to)[i], got)
		}
	}
}

// TestAColumnOfOneValueIsLikeItself has nothing that a block could tell.
func TestAColumnOfOneValueIsLikeItself(t *testing.T) {
	for _, model := range likeness(anonymize.NewReference([]float64{0, 1}, 1, 2)) {
		if !model.Holds([]uint32{1}, []uint32{5}) {
			t.Errorf("%s does not hold", model)
		}
		if model.Holds([]uint32{2}, []uint32{5}) {
			t.Errorf("%s holds of another value", model)
		}
	}
}
