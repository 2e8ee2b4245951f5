package audit

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

// shown is what lists show of a line, apart from the line itself.
type shown struct {
	principal, verdict, sqlstate *string
	relations                    []string
	risk, loss                   *float64
	minBlock                     *int
	rows                         *int64
}

// ended is what the completions of a record add to it.
type ended struct {
	verdict  Verdict
	sqlstate string
	rows     int64
}

// table reads the lines of every chain, compares them with the file's, and
// what lists show with the lines.
func (v *verification) table(ctx context.Context, conn pgx.Tx, both bool) error {
	unnumbered := 0
	completions := make(map[string]*ended)
	if err := v.completions(ctx, conn, completions); err != nil {
		return err
	}
	rows, err := conn.Query(ctx,
		`SELECT coalesce(log, ''), coalesce(sequence, 0), line, principal, verdict, sqlstate,
		relations, risk, loss, min_block, rows FROM tailor.audit_lines ORDER BY log, sequence`)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var log, line string
		var sequence int64
		var s shown
		if err := rows.Scan(&log, &sequence, &line, &s.principal, &s.verdict, &s.sqlstate,
			&s.relations, &s.risk, &s.loss, &s.minBlock, &s.rows); err != nil {
			return err
		}
		if log == "" {
			unnumbered++
			continue
		}
		place := fmt.Sprintf("table, record %d of chain %s", sequence, log)
		l := v.line(inTable, place, []byte(line))
		if l == nil {
			continue
		}
		if l.Log != log || l.Sequence != sequence {
			v.fault("%s: the line belongs to record %d of chain %s", place, l.Sequence, l.Log)
		}
		if both {
			if v.hashes[l.Log] == nil {
				v.hashes[l.Log] = make(map[int64]string)
			}
			v.hashes[l.Log][l.Sequence] = l.Hash
		}
		if l.Event != Completion {
			v.compare(place, []byte(line), s, completions[l.ID])
		}
	}
	if unnumbered > 0 {
		v.report.Notes = append(v.report.Notes,
			fmt.Sprintf("%d records of a version that did not number them were not verified in the table",
				unnumbered))
	}
	return rows.Err()
}

// completions adds up how the answers ended.
func (v *verification) completions(ctx context.Context, conn pgx.Tx, into map[string]*ended) error {
	rows, err := conn.Query(ctx,
		`SELECT line FROM tailor.audit_lines WHERE principal IS NULL ORDER BY log, sequence`)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var line []byte
		if err := rows.Scan(&line); err != nil {
			return err
		}
		var c completion
		if json.Unmarshal(line, &c) != nil || c.Completes == "" {
			continue // the walk over all lines finds it
		}
		e := into[c.Completes]
		if e == nil {
			e = &ended{}
			into[c.Completes] = e
		}
		e.add(c)
	}
	return rows.Err()
}

func (e *ended) add(c completion) {
	e.rows += c.Rows
	if c.Verdict != "" {
		e.verdict, e.sqlstate = c.Verdict, c.SQLState
	}
}

// compare checks what lists show against the record and its completions.
func (v *verification) compare(place string, line []byte, s shown, e *ended) {
	var r Record
	if json.Unmarshal(line, &r) != nil {
		return // found as altered
	}
	if s.principal == nil {
		v.fault("%s: lists do not show it", place)
		return
	}
	verdict, sqlstate, rows := r.Verdict, r.SQLState, int64(0)
	if r.Rows != nil {
		rows = *r.Rows
	}
	if e != nil {
		rows += e.rows
		if e.verdict != "" {
			verdict, sqlstate = e.verdict, e.sqlstate
		}
	}
	shownRows := int64(0)
	if s.rows != nil {
		shownRows = *s.rows
	}
	if *s.principal != r.Principal || Verdict(*s.verdict) != verdict || *s.sqlstate != sqlstate ||
		!slices.Equal(s.relations, r.Relations) || *s.risk != r.AggregateRisk ||
		*s.loss != r.AggregateLoss ||
		*s.minBlock != r.MinBlock || shownRows != rows {
		v.fault("%s: lists show something else than the record says", place)
	}
}

// onlyInFile finds what the table lacks of the file's chains. Lines after its
// last one that are younger than a time may be on their way.
func (v *verification) onlyInFile(before time.Time) {
	for _, log := range slices.Sorted(maps.Keys(v.in[inFile])) {
		f, t := v.in[inFile][log], v.in[inTable][log]
		if since, ok := v.beyond[log]; ok && since.Before(before) {
			last := int64(0)
			if t != nil {
				last = t.Last
			}
			v.fault("table: the records of chain %s after %d, which the file has, are missing (a proxy "+
				"that was killed adds them when it starts again)", log, last)
		}
		if t != nil && t.First > f.First {
			v.fault("table: records %d to %d of chain %s, which the file has, are missing", f.First,
				t.First-1, log)
		}
	}
}
