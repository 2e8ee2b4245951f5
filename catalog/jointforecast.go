package catalog

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/hiatus-tailor/tailor/anonymize"
	"github.com/hiatus-tailor/tailor/anonymize/disassociate"
	"github.com/hiatus-tailor/tailor/anonymize/disassociate/published"
	"github.com/hiatus-tailor/tailor/ecg"
)

// JointForecast is what codes lose by being published together with quasi-identifiers of
// the parent: of the pairs of codes that Least subjects or more have, the median relative
// error of how many those are, expected over all readings.
type JointForecast struct {
	Subjects, GroupSize, Pairs int
	Alone, Joint               float64
}

// LeastPair is how many subjects have a pair of codes that a [JointForecast] looks at.
const LeastPair = 100

// forecastSubjects is how many subjects a [JointForecast] looks at, at most.
const forecastSubjects = 60_000

// NewJointForecast reads codes and quasi-identifiers from the tables themselves. r names the
// columns of the parent that it would be published with, see [Relation.Borrow]; it need not be
// in force. nil where too few subjects are there, or codes stand in arrays.
func NewJointForecast(ctx context.Context, tx pgx.Tx, r *Relation) (*JointForecast, error) {
	if code := r.Column(r.SetValued.Column); code == nil || strings.HasSuffix(code.Type, "[]") {
		return nil, nil
	}
	read, records, err := readJointly(ctx, tx, r)
	if err != nil {
		return nil, fmt.Errorf("read the codes: %w", err)
	}
	f := &JointForecast{Subjects: len(records), GroupSize: r.groupSize()}
	if f.Subjects < f.GroupSize {
		return nil, nil
	}
	columns, leaves, err := encode(r.Dimensions(), read)
	if err != nil {
		return nil, nil // what has no place is told of the parent
	}
	table, err := anonymize.NewTable(columns, leaves, nil)
	if err != nil {
		return nil, err
	}
	groups := &people{}
	groups.partition, err = ecg.MakeRoot(ctx, table, ecg.RootPlan{
		Requirements: []anonymize.Requirement{anonymize.BlockK{K: f.GroupSize}},
		Gate:         ecg.HighestRisk(f.GroupSize), Recoding: ecg.Local,
	})
	if err != nil {
		return nil, err
	}
	for _, tuple := range table.TupleOfRow() {
		groups.groupOf = append(groups.groupOf, groups.partition.BlockOf()[tuple])
	}
	groups.sort(r)
	pairs := frequentPairs(records)
	if f.Pairs = len(pairs); f.Pairs == 0 {
		return nil, nil
	}
	if f.Alone, err = pairError(ctx, records, nil, r, pairs); err != nil {
		return nil, err
	}
	f.Joint, err = pairError(ctx, records, groups, r, pairs)
	return f, err
}

// readJointly reads the columns that codes are published with as text, [column][subject], and
// the codes of each subject, in order.
func readJointly(
	ctx context.Context,
	tx pgx.Tx,
	r *Relation,
) (read []*texts, records [][]string, err error) {
	var names []string
	for i := range r.Parent.Columns {
		names = append(names, fmt.Sprintf("p.%s::text", ident(r.Parent.Columns[i].Name)))
	}
	key := "p." + ident(r.Parent.Subject)
	rows, err := tx.Query(
		ctx,
		fmt.Sprintf(
			`SELECT ARRAY[%s], ARRAY(SELECT DISTINCT c.%s::text FROM %s c
				WHERE c.%s = %s AND c.%[2]s IS NOT NULL ORDER BY 1)
		FROM (SELECT * FROM %[6]s p ORDER BY pg_catalog.md5(%[5]s::text) LIMIT %[7]d) p`,
			commas(
				names,
			),
			ident(r.SetValued.Column),
			pgx.Identifier{r.Schema, r.Name}.Sanitize(),
			ident(r.Subject),
			key,
			pgx.Identifier{r.Parent.Schema, r.Parent.Name}.Sanitize(),
			forecastSubjects,
		),
	)
	if err != nil {
		return nil, nil, err
	}
	read = newTexts(len(names))
	var values []*string
	var codes []string
	_, err = pgx.ForEachRow(rows, []any{&values, &codes}, func() error {
		for i, value := range values {
			if value == nil {
				read[i].add(nil)
			} else {
				read[i].add([]byte(*value))
			}
		}
		records = append(records, slices.Clone(codes))
		values, codes = nil, nil
		return nil
	})
	return read, records, err
}

// frequentPairs are the pairs of codes that [LeastPair] records or more have.
func frequentPairs(records [][]string) map[[2]string]int {
	pairs := make(map[[2]string]int)
	for _, codes := range records {
		for i, x := range codes {
			for _, y := range codes[i+1:] {
				pairs[[2]string{x, y}]++
			}
		}
	}
	for pair, n := range pairs {
		if n < LeastPair {
			delete(pairs, pair)
		}
	}
	return pairs
}

// pairError is the median relative error of the pairs, in groups or without.
func pairError(
	ctx context.Context,
	records [][]string,
	groups *people,
	r *Relation,
	pairs map[[2]string]int,
) (float64, error) {
	cfg := r.config()
	if groups != nil {
		people := make([]coded, len(records))
		for i, codes := range records {
			people[i].codes = codes
		}
		cfg.Groups, cfg.MayBeEmpty = groups.sorted(people), true
	}
	builder := disassociate.Builder{MayBeEmpty: cfg.MayBeEmpty}
	for _, codes := range records {
		if len(codes) == 0 && groups == nil {
			continue
		}
		if err := builder.Add(codes...); err != nil {
			return 0, err
		}
	}
	// The seed decides the order of clusters and nothing that is counted here.
	result, err := disassociate.Disassociate(
		ctx,
		builder.Dataset(),
		cfg,
		rand.New(rand.NewPCG(1, 1)),
		nil,
	)
	if err != nil {
		return 0, err
	}
	index := published.NewIndex(result.Form)
	var off []float64
	for pair, n := range pairs {
		off = append(off, math.Abs(index.Count(pair[:]).Expected-float64(n))/float64(n))
	}
	slices.Sort(off)
	return off[len(off)/2], nil
}
