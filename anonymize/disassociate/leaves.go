package disassociate

import "fmt"

// TooFewError is returned where the data cannot be published at all: there
// are fewer records than a cluster needs.
type TooFewError struct {
	Records, Needed int
}

func (e *TooFewError) Error() string {
	return fmt.Sprintf("%d records are too few: a cluster needs %d", e.Records, e.Needed)
}

// mergeLeaves makes clusters of the leaves of HORPART: a leaf that cannot be a
// cluster is taken together with the leaves after it until it can, and what
// remains at the end joins the cluster before it. It returns the end of each
// cluster in l.records.
//
// [Loukides2014] does not ask for this, but Guarantee 1 fails without it:
// there cannot be k candidates in a cluster of fewer than k records.
//
// A cluster needs minCluster records and, with strict diversity, Diversity
// times the records that hold any one sensitive code. It fails with a
// *[TooFewError] where all records together do not meet that.
func mergeLeaves(d *Dataset, r *roles, cfg *Config, l *leaves) ([]int, error) {
	held := newSensitiveCount(d, r, cfg)
	var ends []int
	begin := 0
	for _, end := range l.ends {
		if need := held.needed(l.records[begin:end]); end-begin >= need {
			ends = append(ends, end)
			begin = end
		}
	}
	if begin == len(l.records) && begin > 0 {
		return ends, nil
	}
	for len(ends) > 0 {
		ends = ends[:len(ends)-1]
		begin = 0
		if len(ends) > 0 {
			begin = ends[len(ends)-1]
		}
		if len(l.records)-begin >= held.needed(l.records[begin:]) {
			return append(ends, len(l.records)), nil
		}
	}
	return nil, &TooFewError{Records: len(l.records), Needed: held.needed(l.records)}
}

// sensitiveCount says how many records a cluster needs.
type sensitiveCount struct {
	data  *Dataset
	roles *roles
	cfg   *Config
	count []int // by item; all zero between calls
}

func newSensitiveCount(d *Dataset, r *roles, cfg *Config) *sensitiveCount {
	return &sensitiveCount{data: d, roles: r, cfg: cfg, count: make([]int, len(d.codes))}
}

func (s *sensitiveCount) needed(records []int32) int {
	need := s.cfg.minCluster()
	if !s.cfg.StrictDiversity {
		return need
	}
	for _, r := range records {
		for _, it := range s.data.Items(int(r)) {
			if s.roles.sensitive[it] {
				s.count[it]++
				need = max(need, s.cfg.Diversity*s.count[it])
			}
		}
	}
	for _, r := range records {
		for _, it := range s.data.Items(int(r)) {
			s.count[it] = 0
		}
	}
	return need
}
