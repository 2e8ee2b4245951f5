package console

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"github.com/jackc/pgx/v5"

	"github.com/hiatus-tailor/tailor/catalog"
)

// classCount says how many equivalence classes of a release have so many subjects.
type classCount struct {
	Subjects int64 `json:"subjects"`
	Classes  int64 `json:"classes"`
}

// heldModel is a privacy model of a policy, and how many classes do not meet it, counted over the
// stored release.
type heldModel struct {
	Phrase  string `json:"phrase"`
	Failing int64  `json:"failing"`
}

// counted is what was counted of a release at a generation.
type counted struct {
	edition, generation int
	sizes               []classCount
	models              []heldModel
}

// classes keeps what was counted, by chain: the rows of a release are many. It is safe for
// concurrent use.
type classes struct {
	mu   sync.Mutex
	kept map[int]counted
}

// count fills in the sizes of the classes of a release and whether they meet the models, unless
// the release has none of its own: data sets have those of their table, publications of codes
// have clusters.
func (c *Console) count(ctx context.Context, r *tableRelease) error {
	c.classes.mu.Lock()
	old, ok := c.classes.kept[r.Chain]
	c.classes.mu.Unlock()
	if !ok || old.edition != r.edition || old.generation != r.Generation {
		found, err := c.countNow(ctx, r)
		if err != nil {
			return err
		}
		old = *found
		c.classes.mu.Lock()
		if c.classes.kept == nil {
			c.classes.kept = make(map[int]counted)
		}
		c.classes.kept[r.Chain] = old
		c.classes.mu.Unlock()
	}
	r.Sizes, r.Models = old.sizes, old.models
	return nil
}

func (c *Console) countNow(ctx context.Context, r *tableRelease) (*counted, error) {
	out := &counted{edition: r.edition, generation: r.Generation}
	stored := fmt.Sprintf("tailor_store.%s_row", catalog.ReleaseName(r.Chain, r.edition))
	var blocks bool
	err := c.pool.QueryRow(ctx, `SELECT count(*) = 2 FROM pg_attribute
		WHERE attrelid = to_regclass($1) AND attname IN ('tailor block', 'tailor person')`,
		stored).Scan(&blocks)
	if err != nil || !blocks {
		return out, err
	}
	rows, err := c.pool.Query(ctx, fmt.Sprintf(`SELECT n, count(*) FROM (
			SELECT count(DISTINCT "tailor person") AS n FROM %s GROUP BY "tailor block") b
		GROUP BY n ORDER BY n`, stored))
	if err != nil {
		return nil, err
	}
	if out.sizes, err = pgx.CollectRows(rows, pgx.RowToStructByPos[classCount]); err != nil {
		return nil, err
	}
	rows, err = c.pool.Query(ctx, `SELECT q, (
			SELECT count(DISTINCT b) FROM unnest(tailor.failing_blocks($1, jsonb_build_object(
				'require', jsonb_build_array(q), 'cuts', v.policy -> 'cuts'), $2, 'true')) b)
		FROM tailor.chain c
		JOIN tailor.policy_version v ON (v.relation, v.version) = (c.relation, c.version)
		CROSS JOIN jsonb_array_elements(v.policy -> 'require') WITH ORDINALITY AS u (q, nth)
		WHERE c.chain = $2 ORDER BY nth`, stored, r.Chain)
	if err != nil {
		return nil, err
	}
	out.models, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (heldModel, error) {
		var m heldModel
		var text []byte
		var q requirement
		err := row.Scan(&text, &m.Failing)
		if err == nil {
			err = json.Unmarshal(text, &q)
		}
		m.Phrase = q.String()
		return m, err
	})
	return out, err
}

// mostBars bounds how many bars the chart of a release has.
const mostBars = 24

// bars joins sizes into at most so many ranges of equal width, so that the few largest classes
// do not make the others unreadable: the last is open.
func bars(sizes []classCount) []classBar {
	if len(sizes) == 0 {
		return nil
	}
	smallest := sizes[0].Subjects
	var all, seen int64
	for _, s := range sizes {
		all += s.Classes
	}
	most := sizes[len(sizes)-1].Subjects
	for _, s := range sizes { // 95 in 100 classes are told apart
		if seen += s.Classes; seen*100 >= all*95 {
			most = s.Subjects
			break
		}
	}
	width := max(1, (most-smallest+mostBars-1)/(mostBars-1))
	var out []classBar
	for _, s := range sizes {
		at := smallest + min((s.Subjects-smallest)/width, mostBars-1)*width
		i, found := slices.BinarySearchFunc(out, at, func(b classBar, at int64) int {
			return int(b.From - at)
		})
		if !found {
			out = slices.Insert(out, i, classBar{From: at})
		}
		out[i].To, out[i].Classes = max(at+width-1, s.Subjects), out[i].Classes+s.Classes
	}
	return out
}

// classBar is a range of sizes and how many classes are in it.
type classBar struct {
	From    int64 `json:"from"`
	To      int64 `json:"to"`
	Classes int64 `json:"classes"`
}
