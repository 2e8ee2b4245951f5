// Package ahocorasick finds out in one pass whether a text holds one of many words.
package ahocorasick

import (
	"strings"
	"unicode/utf8"
)

// Set is a set of words to look for, as an automaton over the bytes of a text
// ([Aho1975]): one table look-up a byte, however many words there are. It is
// immutable and safe for concurrent use.
type Set struct {
	words   []string   // lower case, as strings.ToLower makes it
	classes [128]uint8 // of a byte; all that are in no word share class 0
	width   int        // number of classes
	next    []int32    // state × class → state; the state of a whole word is found
}

const found = -1

// New makes a set. Case counts neither in words nor in texts. Words are not
// empty.
func New(words []string) *Set {
	s := &Set{width: 1}
	var ascii []string
	for _, w := range words {
		w = strings.ToLower(w)
		s.words = append(s.words, w)
		if isASCII(w) {
			ascii = append(ascii, w)
		}
	}
	s.classify(ascii)
	s.build(ascii)
	return s
}

func isASCII(text string) bool {
	for i := range len(text) {
		if text[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// classify gives each byte that is in a word a class, the same to both cases.
func (s *Set) classify(words []string) {
	for _, w := range words {
		for i := range len(w) {
			c := w[i]
			if s.classes[c] != 0 {
				continue
			}
			s.classes[c] = uint8(s.width)
			if c >= 'a' && c <= 'z' {
				s.classes[c-'a'+'A'] = uint8(s.width)
			}
			s.width++
		}
	}
}

// build makes the trie of the words and turns it into an automaton.
func (s *Set) build(words []string) {
	s.next = make([]int32, s.width)
	for _, w := range words {
		s.insert(w)
	}
	fallback := make([]int32, len(s.next)/s.width)
	queue := []int32{0}
	for len(queue) > 0 {
		state := queue[0]
		queue = queue[1:]
		for class := range s.width {
			edge := &s.next[int(state)*s.width+class]
			other := int32(0)
			if state != 0 {
				other = s.next[int(fallback[state])*s.width+class]
			}
			switch {
			case *edge == found || other == found:
				*edge = found
			case *edge == 0:
				*edge = other
			default:
				fallback[*edge] = other
				queue = append(queue, *edge)
			}
		}
	}
}

func (s *Set) insert(word string) {
	state := int32(0)
	for i := range len(word) {
		edge := int(state)*s.width + int(s.classes[word[i]])
		if s.next[edge] == found {
			return // a shorter word is enough
		}
		if i == len(word)-1 {
			s.next[edge] = found
			return
		}
		if s.next[edge] == 0 {
			s.next[edge] = int32(len(s.next) / s.width)
			s.next = append(s.next, make([]int32, s.width)...)
		}
		state = s.next[edge]
	}
}

// Within says whether a text holds one of the words anywhere, also inside of
// another word. It allocates nothing for a text that is ASCII.
func (s *Set) Within(text string) bool {
	state := 0
	for i := range len(text) {
		c := text[i]
		if c >= utf8.RuneSelf {
			return s.slow(text)
		}
		next := s.next[state+int(s.classes[c])]
		if next == found {
			return true
		}
		state = int(next) * s.width
	}
	return false
}

// slow is for texts beyond ASCII, where lower case is a matter of tables.
func (s *Set) slow(text string) bool {
	lower := strings.ToLower(text)
	for _, w := range s.words {
		if strings.Contains(lower, w) {
			return true
		}
	}
	return false
}
