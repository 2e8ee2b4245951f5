package anonymize

func (s *searcher) bestFirst() bool { return s.flash() }
func (s *searcher) greedy()         {}
