package identify

import "strings"

// IsKind says that a value is of the first kind whose name holds a word.
func IsKind(word, value string) bool {
	for i := range kinds {
		if strings.Contains(string(kinds[i].name), word) {
			return kinds[i].is(value)
		}
	}
	panic("no kind of that name: " + word)
}
