// Package setdata loads the set-valued reference data for tests, benchmarks
// and experiments, and makes data of any size.
package setdata

import (
	"compress/gzip"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"

	"github.com/hiatus-tailor/tailor/anonymize/disassociate"
)

// Load reads a gzipped data file, one record a line.
func Load(path string) (*disassociate.Dataset, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	unzipped, err := gzip.NewReader(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	d, _, err := disassociate.ReadDataset(unzipped)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return d, nil
}

// Head is the data set of the first records of another, at most all.
func Head(d *disassociate.Dataset, records int) (*disassociate.Dataset, error) {
	var b disassociate.Builder
	var codes []string
	for r := range min(records, d.Len()) {
		codes = d.AppendCodes(codes[:0], r)
		if err := b.Add(codes...); err != nil {
			return nil, err
		}
	}
	return b.Dataset(), nil
}

// Synthetic makes records of about mean codes each (at least one, at most four
// times mean) over a domain of codes. The frequency of a code falls with its
// rank like that of words (Zipf), and every second code of a record comes from
// the neighbourhood of the one before, so that there is something to cluster.
func Synthetic(records, codes, mean int, seed uint64) (*disassociate.Dataset, error) {
	rng := rand.New(rand.NewPCG(seed, 1))
	zipf := rand.NewZipf(rng, 1.1, 8, uint64(codes-1))
	var b disassociate.Builder
	var record []string
	for range records {
		size := min(1+int(math.Round(rng.ExpFloat64()*float64(mean-1))), 4*mean)
		record = record[:0]
		last := 0
		for i := range size {
			code := int(zipf.Uint64())
			if i%2 == 1 {
				code = (last + 1 + rng.IntN(8)) % codes
			}
			last = code
			if name := fmt.Sprintf("C%05d", code); !slices.Contains(record, name) {
				record = append(record, name)
			}
		}
		if err := b.Add(record...); err != nil {
			return nil, err
		}
	}
	return b.Dataset(), nil
}

// Lines writes a data set as Load reads it, unzipped.
func Lines(w io.Writer, d *disassociate.Dataset) error {
	var codes []string
	for r := range d.Len() {
		codes = d.AppendCodes(codes[:0], r)
		if _, err := fmt.Fprintln(w, strings.Join(codes, " ")); err != nil {
			return err
		}
	}
	return nil
}
