package identify

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// scales are words in order, written as [plain] leaves them. Words of one line
// that mean the same are separated by a bar.
var scales = [][]string{
	strings.Fields("verylow low medium|moderate|middle|average high veryhigh"),
	strings.Fields("none no|absent slight mild moderate|medium severe verysevere critical"),
	strings.Fields(
		"never rarely|seldom sometimes|occasionally often|frequently usually|veryoften always",
	),
	strings.Fields(
		"verypoor|verybad poor|bad fair|satisfactory|average good verygood excellent|outstanding",
	),
	strings.Fields(
		"stronglydisagree disagree neutral|undecided|neitheragreenordisagree agree stronglyagree",
	),
	strings.Fields("xxs xs s m l xl xxl xxxl"),
	strings.Fields("tiny small medium large|big huge|verylarge"),
	strings.Fields(
		"infant|baby child teenager|adolescent youngadult adult middleaged elderly|senior",
	),
	strings.Fields(`january|jan february|feb march|mar april|apr may june|jun july|jul august|aug
		september|sep|sept october|oct november|nov december|dec`),
	strings.Fields(
		"monday|mon tuesday|tue wednesday|wed thursday|thu friday|fri saturday|sat sunday|sun",
	),
	strings.Fields("i ii iii iv v vi vii viii ix x"),
	// Levels of education by ISCED 2011, with words of American censuses.
	strings.Fields(`noeducation|noschooling|none preschool|kindergarten|earlychildhood
		1st4th|primary|elementary 5th6th 7th8th|lowersecondary|middleschool 9th 10th 11th
		12th|12thnodiploma uppersecondary|secondary|highschool hsgrad|highschoolgraduate|ged
		postsecondary|somecollege assocvoc assocacdm|associate|associates|shortcycletertiary
		bachelor|bachelors|undergraduate|tertiary|university master|masters|graduate
		profschool|professional doctor|doctorate|phd`),
}

var notPlain = regexp.MustCompile(`[^\pL\pN]+`)

// plain leaves letters and digits.
func plain(text string) string { return notPlain.ReplaceAllString(strings.ToLower(text), "") }

// inOrder sorts values that have an order: words of one scale, or texts that
// start with numbers. ok is false for others.
func inOrder(values []string) (ordered []string, ok bool) {
	for _, scale := range scales {
		rank := func(v string) (float64, bool) { return rankIn(scale, v) }
		if ordered, ok = byRank(values, rank); ok {
			return ordered, true
		}
	}
	return byRank(values, leadingNumber)
}

// byRank sorts values of different ranks.
func byRank(values []string, rank func(string) (float64, bool)) ([]string, bool) {
	ranks := make(map[string]float64)
	taken := make(map[float64]bool)
	for _, v := range values {
		r, ok := rank(v)
		if !ok || taken[r] {
			return nil, false
		}
		ranks[v], taken[r] = r, true
	}
	ordered := slices.Clone(values)
	slices.SortFunc(ordered, func(a, b string) int { return cmp.Compare(ranks[a], ranks[b]) })
	return ordered, true
}

func rankIn(scale []string, value string) (float64, bool) {
	word := plain(value)
	for i, words := range scale {
		if slices.Contains(strings.Split(words, "|"), word) {
			return float64(i), true
		}
	}
	return 0, false
}

var startsWithNumber = regexp.MustCompile(
	`^([<≤>≥]=?|under |over |up to )? *([0-9]+(?:[.][0-9]+)?)`,
)

// leadingNumber ranks "10-19", "1st", "<=50K" and ">50K".
func leadingNumber(value string) (float64, bool) {
	parts := startsWithNumber.FindStringSubmatch(strings.ToLower(value))
	if parts == nil {
		return 0, false
	}
	number, err := strconv.ParseFloat(parts[2], 64)
	switch sign := parts[1]; {
	case err != nil:
		return 0, false
	case sign == "<" || sign == "<=" || sign == "≤" || sign == "under " || sign == "up to ":
		number -= 1e-6
	case sign != "":
		number += 1e-6
	}
	return number, true
}
