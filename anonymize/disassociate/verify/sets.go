package verify

import "github.com/hiatus-tailor/tailor/anonymize/disassociate/published"

// setCheck decides k^m-anonymity of a chunk by the definition: every set of at
// most m codes that one sub-record holds is held by at least k sub-records.
// It searches the sets of each distinct sub-record and leaves out those that
// cannot be rarer than a set already looked at.
type setCheck struct {
	k, m  int
	chunk *published.Chunk
}

// hold says whether a chunk is k^m-anonymous.
func (s *setCheck) hold(chunk *published.Chunk) bool {
	s.chunk = chunk
	var every []int
	for i := range chunk.Sub {
		if chunk.Sub[i].Count < s.k && every == nil {
			every = make([]int, len(chunk.Sub))
			for j := range every {
				every[j] = j
			}
		}
		if chunk.Sub[i].Count < s.k && !s.extend(every, chunk.Sub[i].Items, s.m) {
			return false
		}
	}
	return true
}

// extend checks the sets made of a set, whose holders are given, and one to
// left of further items of the same sub-record.
func (s *setCheck) extend(holders []int, items []published.Item, left int) bool {
	if left == 0 || len(items) == 0 || s.count(s.holding(holders, items)) >= s.k {
		return true // all of them together are held often enough
	}
	for i := range items {
		narrower := s.holding(holders, items[i:i+1])
		if s.count(narrower) < s.k {
			return false
		}
		if len(narrower) == len(holders) {
			continue // everybody has it: with or without it, the same holders
		}
		if !s.extend(narrower, items[i+1:], left-1) {
			return false
		}
	}
	return true
}

// holding lists the holders that hold all of items.
func (s *setCheck) holding(holders []int, items []published.Item) []int {
	var out []int
	for _, h := range holders {
		if subset(items, s.chunk.Sub[h].Items) {
			out = append(out, h)
		}
	}
	return out
}

func (s *setCheck) count(holders []int) int {
	n := 0
	for _, h := range holders {
		n += s.chunk.Sub[h].Count
	}
	return n
}

// subset says whether all of an ascending set are among ascending items.
func subset(set, items []published.Item) bool {
	i := 0
	for _, want := range set {
		for i < len(items) && items[i] < want {
			i++
		}
		if i == len(items) || items[i] != want {
			return false
		}
	}
	return true
}
