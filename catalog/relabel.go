package catalog

import (
	"context"
	"encoding/json"
	"fmt"
	"math/big"
	"reflect"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/hiatus-tailor/tailor/anonymize"
)

// label finds the nodes of blocks again in the dimensions whose hierarchies have
// changed, which it returns: those that cover the values that the copy has of the
// blocks' people; and what a block was shown by, where it lacks some of these, or has them
// with other values.
func (t *takingIn) label(
	ctx context.Context, was *Relation, parts []*part,
) (changed []int, err error) {
	for i, q := range t.r.Dimensions() {
		if !reflect.DeepEqual(q.Hierarchy, was.Dimensions()[i].Hierarchy) {
			changed = append(changed, i)
		}
	}
	if len(changed) == 0 {
		return nil, nil
	}
	covered, err := t.covered(ctx)
	if err != nil {
		return nil, err
	}
	differs, err := t.differing(ctx)
	if err != nil {
		return nil, err
	}
	then, now := make(map[int]codeList), make(map[int]codeList)
	for _, i := range changed {
		then[i] = codesOf(was.Dimensions()[i].Hierarchy)
		now[i] = codesOf(t.r.Dimensions()[i].Hierarchy)
	}
	for _, p := range parts {
		for _, i := range changed {
			h := t.copied.columns[i].Hierarchy
			if values := covered[p.number]; values != nil {
				node := h.Cover(values[i].lo, values[i].hi)
				if differs[p.number] {
					node = t.over(i, node, p.shown[i].label, then[i], now[i])
				}
				p.shown[i].becomes(node)
			} else { // nobody of the block is left to tell
				p.shown[i].becomes(h.Root())
			}
		}
	}
	return changed, nil
}

// span is the lowest and the highest leaf of some values.
type span struct{ lo, hi uint32 }

// covered are the values that the copy has of the people of each block, by dimension.
func (t *takingIn) covered(ctx context.Context) (map[int][]span, error) {
	rows, err := t.tx.Query(ctx, fmt.Sprintf("SELECT DISTINCT r.%s, e.%s FROM %s r JOIN "+
		"tailor_store.epoch_%d e ON %s",
		blockColumn, tupleColumn, t.chain.table("row"), t.r.Epoch, t.same("e", "r")))
	if err != nil {
		return nil, err
	}
	out := make(map[int][]span)
	var number int
	var tuple uint32
	_, err = pgx.ForEachRow(rows, []any{&number, &tuple}, func() error {
		values, known := out[number]
		if !known {
			values = make([]span, len(t.copied.columns))
			out[number] = values
		}
		for i := range values {
			leaf := t.copied.leaves[i][tuple]
			if !known {
				values[i] = span{leaf, leaf}
			}
			values[i].lo, values[i].hi = min(values[i].lo, leaf), max(values[i].hi, leaf)
		}
		return nil
	})
	return out, err
}

// differing are the blocks of which the copy lacks a row, or has one with other values of the
// dimensions: who has left or moved is shown as he was.
func (t *takingIn) differing(ctx context.Context) (map[int]bool, error) {
	rows, err := t.tx.Query(ctx, fmt.Sprintf(`SELECT r.%s FROM %s r
			LEFT JOIN tailor_store.epoch_%d e ON %s
		GROUP BY 1 HAVING bool_or(e.%[5]s IS NULL OR (e.%[6]s # r.%[6]s) & 4294967295 <> 0)`,
		blockColumn, t.chain.table("row"), t.r.Epoch, t.same("e", "r"), personColumn, keyColumn))
	if err != nil {
		return nil, err
	}
	out := make(map[int]bool)
	var number int
	_, err = pgx.ForEachRow(rows, []any{&number}, func() error {
		out[number] = true
		return nil
	})
	return out, err
}

// codeList says which values each label of a hierarchy of the kind table stands for.
type codeList map[string][]string

func codesOf(spec *HierarchySpec) codeList {
	out := make(codeList)
	var list tableDefinition
	if spec.Kind != "table" || json.Unmarshal(spec.Definition, &list) != nil {
		return out
	}
	for _, path := range list.Paths {
		for _, label := range slices.Compact(slices.Sorted(slices.Values(path))) {
			out[label] = append(out[label], path[0])
		}
	}
	return out
}

// over is the lowest node over another one that has all that an earlier label had, by its
// number; the root where that cannot be told.
func (t *takingIn) over(
	dimension int, node anonymize.Node, label int, then, now codeList,
) anonymize.Node {
	h := t.copied.columns[dimension].Hierarchy
	for ; node.Level < h.Height()-1; node = above(h, node) {
		if label == 0 {
			if null, there := h.NullCode(); there && within(h, node, null) {
				break
			}
		} else if hasAll(h, node, t.dictionaries[dimension].entries[label-1], then, now) {
			break
		}
	}
	return node
}

func above(h *anonymize.Hierarchy, n anonymize.Node) anonymize.Node {
	first, _ := h.Range(n)
	return anonymize.Node{Level: n.Level + 1, Group: h.Generalize(first, n.Level+1)}
}

func within(h *anonymize.Hierarchy, n anonymize.Node, leaf uint32) bool {
	first, last := h.Range(n)
	return first <= leaf && leaf <= last
}

// hasAll says whether a node has all values of an entry of another hierarchy: by the ends of
// both, by the characters that both keep of a code, or by the list of them; false where that does
// not tell. What covers everything may be NULL, which no node below the root has beside values.
func hasAll(h *anonymize.Hierarchy, n anonymize.Node, of entry, then, now codeList) bool {
	if of.label == h.Label(h.Root()) {
		return false
	}
	if values := then[of.label]; len(values) > 0 {
		return !slices.ContainsFunc(values, func(value string) bool {
			if leaf, known := h.Code(value); known {
				return !within(h, n, leaf)
			}
			return !slices.Contains(now[h.Label(n)], value) // nobody has it now
		})
	}
	if leaf, known := h.Code(of.label); known && of.lost.Exact {
		return within(h, n, leaf)
	}
	if low, high, measured := h.Bounds(n); measured && of.bounded {
		return notAbove(low, of.low) && notAbove(of.high, high)
	}
	kept, all := strings.TrimRight(h.Label(n), "*"), strings.TrimRight(of.label, "*")
	return kept != h.Label(n) && (of.lost.Exact || all != of.label) && strings.HasPrefix(all, kept)
}

// notAbove compares ends, which are numbers, or days as ISO 8601 has them.
func notAbove(x, y string) bool {
	a, number := new(big.Rat).SetString(x)
	b, too := new(big.Rat).SetString(y)
	if number && too {
		return a.Cmp(b) <= 0
	}
	return !number && !too && x <= y
}
