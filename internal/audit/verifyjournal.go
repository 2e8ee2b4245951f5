package audit

import "fmt"

// journal compares what a process that was killed left in the journal with the
// lines of the files, which have been read. The journal proves that the line
// before its first was there.
func (v *verification) journal(path string, j *journaled) {
	name, log, before := journalPath(path), j.first.Log, j.first.Sequence-1
	c := v.in[inFile][log]
	if c == nil {
		c = &Chain{}
	}
	_, anchored := v.anchor[j.After]
	switch {
	case before > c.Last && !anchored:
		v.fault("%s: records %d to %d of chain %s are missing before it: the file was cut, replaced or "+
			"moved away", name, c.Last+1, before, log)
	case before == c.Last && j.After != c.Head:
		v.fault("%s: record %d of chain %s, on which it follows, is not the one that was written", name,
			before, log)
	}
	if anchored {
		v.anchor[j.After] = true
	}
	if lacking := j.last.Sequence - max(before, c.Last); lacking > 0 {
		v.report.Notes = append(v.report.Notes,
			fmt.Sprintf("the journal of %s holds %d records that the file lacks: a proxy that starts "+
				"keeps them", path, lacking))
	}
}
