package audit

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

// Chain is what a verification found of one chain.
type Chain struct {
	Log string `json:"log"`
	// First and Last are the sequence numbers of the lines that were found.
	First int64  `json:"first"`
	Last  int64  `json:"last"`
	Lines int64  `json:"lines"`
	Head  string `json:"head"` // the hash of the last line
}

// Report is the result of a verification.
type Report struct {
	Chains []Chain `json:"chains"`
	// Faults say, one each, what was altered or removed and where.
	Faults []string `json:"faults"`
	// Notes are no faults: a line that was never finished, records of versions
	// that did not number them.
	Notes []string `json:"notes"`
}

// Source is what a verification reads; File and Conn may both be given.
type Source struct {
	File string    // of the log, with those set aside beside it
	Conn *pgx.Conn // of a member of tailor_admin
	// Anchors are hashes that somebody noted earlier. Each must be that of a
	// line, or of the line before the first.
	Anchors []string
	// Now tells lines that are on their way to the table from those removed there.
	Now time.Time
}

// underWay is how long a line of a running proxy may be in the file before it
// is in the table.
const underWay = time.Minute

// mostFaults bounds a report; a chain of which much is altered has few causes.
const mostFaults = 100

// Verify reads everything and checks that every line is as it was written,
// that none is missing between the first and the last of each chain, that
// chains begin with their first line or at an anchor, that the tail reaches the
// head that the database knows, and that file and table hold the same.
//
// The attacker it is meant for can change, remove and add lines in the file or
// in the table, and knows how hashes are made. Whoever rewrites a whole chain
// from some line on, in every sink and with the head in the database, is found
// by an anchor only.
func Verify(ctx context.Context, s Source) (*Report, error) {
	v := &verification{
		report: &Report{Chains: []Chain{}, Faults: []string{}, Notes: []string{}},
		anchor: make(map[string]bool), in: make(map[string]map[string]*Chain),
		hashes: make(map[string]map[int64]string), beyond: make(map[string]time.Time),
	}
	for _, a := range s.Anchors {
		v.anchor[a] = false
	}
	// The table first, as of one moment: a proxy that writes meanwhile has each
	// line in its file before it is in the table.
	var heads []head
	if s.Conn != nil {
		if err := pgx.BeginTxFunc(ctx, s.Conn,
			pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly},
			func(tx pgx.Tx) (err error) {
				if err := v.table(ctx, tx, s.File != ""); err != nil {
					return err
				}
				heads, err = v.heads(ctx, tx)
				return err
			}); err != nil {
			return nil, err
		}
	}
	if s.File != "" {
		if err := v.file(s.File, s.Conn != nil); err != nil {
			return nil, err
		}
	}
	if s.Conn != nil {
		v.reach(heads)
	}
	if s.Conn != nil && s.File != "" {
		before := s.Now
		if written(s.File) {
			before = before.Add(-underWay)
		}
		v.onlyInFile(before)
	}
	for _, a := range slices.Sorted(maps.Keys(v.anchor)) {
		if !v.anchor[a] {
			v.fault("the record with hash %s, which was noted earlier, is missing", a)
		}
	}
	v.sum(s.File != "")
	return v.report, nil
}

type verification struct {
	report *Report
	anchor map[string]bool              // found or not
	in     map[string]map[string]*Chain // by the name of the sink, by the name of the chain
	hashes map[string]map[int64]string  // of the table's lines, where both sinks are read
	beyond map[string]time.Time         // of the first line that the file has beyond the table
}

func (v *verification) fault(format string, args ...any) {
	if len(v.report.Faults) < mostFaults {
		v.report.Faults = append(v.report.Faults, fmt.Sprintf(format, args...))
	}
}

// The names of the sinks.
const (
	inFile  = "file"
	inTable = "table"
)

// file reads the lines of all files.
func (v *verification) file(path string, both bool) error {
	names, err := files(path)
	if err != nil {
		return err
	}
	j := &journaled{}
	if !written(path) {
		if j, err = readJournal(path); err != nil {
			return err
		}
	}
	for _, name := range names {
		torn, err := eachLine(name, func(number int, line []byte) error {
			l := v.line(inFile, fmt.Sprintf("%s:%d", name, number), line)
			if l != nil && j.last != nil && l.Log == j.last.Log && l.Sequence == j.last.Sequence &&
				l.Hash != j.last.Hash {
				v.fault("%s:%d: record %d of chain %s is another than in the journal", name, number,
					l.Sequence, l.Log)
			}
			if l == nil || !both {
				return nil
			}
			t := v.in[inTable][l.Log]
			if t != nil && t.First <= l.Sequence && l.Sequence <= t.Last &&
				v.hashes[l.Log][l.Sequence] != l.Hash {
				v.fault("%s:%d: the table does not hold the same as record %d of chain %s", name, number,
					l.Sequence, l.Log)
			}
			if t == nil || l.Sequence > t.Last {
				if _, ok := v.beyond[l.Log]; !ok {
					v.beyond[l.Log] = l.Time
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		if torn {
			v.report.Notes = append(v.report.Notes, name+" ends with a line that was never finished, and "+
				"so never answered")
		}
	}
	if j.last != nil {
		v.journal(path, j)
	}
	return nil
}

// line checks one line, which is the next of its chain in its sink.
func (v *verification) line(sink, place string, line []byte) *link {
	l, err := unseal(line)
	if l == nil {
		v.fault("%s: %v", place, err)
		return nil
	}
	if err != nil {
		v.fault("%s: %v", place, err)
	}
	if v.in[sink] == nil {
		v.in[sink] = make(map[string]*Chain)
	}
	c := v.in[sink][l.Log]
	if c == nil {
		c = &Chain{Log: l.Log, First: l.Sequence}
		v.in[sink][l.Log] = c
		if _, known := v.anchor[l.PreviousHash]; known {
			v.anchor[l.PreviousHash] = true
		} else if l.Sequence != 1 || l.PreviousHash != "" {
			v.fault("%s: records 1 to %d of chain %s are missing (moved away? give the hash of the last "+
				"one as an anchor)",
				place, l.Sequence-1, l.Log)
		}
	} else {
		switch {
		case l.Sequence == c.Last+2:
			v.fault("%s: record %d of chain %s is missing", place, c.Last+1, l.Log)
		case l.Sequence > c.Last+1:
			v.fault("%s: records %d to %d of chain %s are missing", place, c.Last+1, l.Sequence-1, l.Log)
		case l.Sequence <= c.Last:
			v.fault("%s: record %d of chain %s comes again, after %d", place, l.Sequence, l.Log, c.Last)
		case l.PreviousHash != c.Head:
			v.fault("%s: record %d of chain %s is not linked to the one before", place, l.Sequence, l.Log)
		}
	}
	if _, known := v.anchor[l.Hash]; known {
		v.anchor[l.Hash] = true
	}
	c.Last, c.Head = l.Sequence, l.Hash
	c.Lines++
	return l
}

// heads reads the database's own note of the last lines.
func (v *verification) heads(ctx context.Context, conn pgx.Tx) ([]head, error) {
	rows, err := conn.Query(ctx, `SELECT log, sequence, hash FROM tailor.audit_heads ORDER BY changed`)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[head])
}

// reach compares the last lines with the heads.
func (v *verification) reach(heads []head) {
	noted := make(map[string]bool)
	for _, h := range heads {
		noted[h.Log] = true
		v.reaches(inTable, h)
		if v.in[inFile][h.Log] != nil {
			v.reaches(inFile, h)
		}
	}
	for _, log := range slices.Sorted(maps.Keys(v.in[inTable])) {
		if !noted[log] {
			v.fault("table: the database does not know the head of chain %s", log)
		}
	}
}

// reaches checks that a chain goes as far as its head. The file may be further
// while the proxy writes.
func (v *verification) reaches(sink string, h head) {
	c := v.in[sink][h.Log]
	switch {
	case c == nil:
		v.fault("%s: chain %s is missing, all %d records of it", sink, h.Log, h.Sequence)
	case c.Last < h.Sequence:
		v.fault("%s: the tail of chain %s is missing: records %d to %d", sink, h.Log, c.Last+1,
			h.Sequence)
	case c.Last == h.Sequence && c.Head != h.Hash:
		v.fault("%s: the last record of chain %s is not the one that was written", sink, h.Log)
	}
}

// sum lists the chains, as the file has them where it was read.
func (v *verification) sum(file bool) {
	sink := inTable
	if file {
		sink = inFile
	}
	all := maps.Clone(v.in[inTable])
	if all == nil {
		all = make(map[string]*Chain)
	}
	maps.Copy(all, v.in[sink])
	for _, log := range slices.Sorted(maps.Keys(all)) {
		v.report.Chains = append(v.report.Chains, *all[log])
	}
}
