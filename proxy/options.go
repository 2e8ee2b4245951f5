package proxy

import (
	"maps"
	"slices"
	"strings"

	"github.com/hiatus-tailor/tailor/planner"
)

// assertParameters refuses a login with values that Tailor's parameters cannot have,
// given by name or among the server's options.
func assertParameters(given map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if _, err := planner.Parameter(name, given[name]); err != nil {
			return err
		}
	}
	words := optionWords(given["options"])
	for i, word := range words {
		setting, ok := strings.CutPrefix(word, "--")
		switch {
		case ok:
		case word == "-c" && i+1 < len(words):
			setting = words[i+1]
		case strings.HasPrefix(word, "-c"):
			setting = word[len("-c"):]
		default:
			continue
		}
		name, value, _ := strings.Cut(setting, "=")
		if _, err := planner.Parameter(strings.ReplaceAll(name, "-", "_"), value); err != nil {
			return err
		}
	}
	return nil
}

// optionWords splits options as PostgreSQL does: at spaces, but for those behind a
// backslash.
func optionWords(options string) (words []string) {
	var word []byte
	inside := false
	for i := 0; i < len(options); i++ {
		c := options[i]
		switch {
		case strings.IndexByte(" \t\n\v\f\r", c) >= 0:
			if inside {
				words = append(words, string(word))
			}
			word, inside = nil, false
			continue
		case c == '\\' && i+1 < len(options):
			i++
			c = options[i]
		}
		word, inside = append(word, c), true
	}
	if inside {
		words = append(words, string(word))
	}
	return words
}
