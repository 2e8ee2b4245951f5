package anonymize

import "fmt"

// Ordering builds a hierarchy over an ordered list of values: at each level,
// runs of neighbours of the level below are put into one group.
type Ordering struct {
	// Values in order, none twice.
	Values []string
	// Sizes[j] says how many groups of level j each group of level j+1 takes,
	// in order; the last group of a level takes what is left. Each is at least
	// 2. A root over everything is added.
	Sizes []int
	// Labels[j], where given and not nil, are the labels of level j+1, one for
	// each of its groups. Others are labelled "first - last".
	Labels [][]string
}

// Build makes the hierarchy; withNull adds a leaf for SQL NULL behind all
// others. It asserts that every one of values is listed and fails with a
// *[HierarchyError] that says which by position where one is not, on a value
// listed twice, on a size below 2 and on labels of another number than the
// groups.
func (o Ordering) Build(values []string, withNull bool) (*Hierarchy, error) {
	seen := make(map[string]bool, len(o.Values))
	paths := make([][]string, len(o.Values))
	for i, v := range o.Values {
		if seen[v] {
			return nil, &HierarchyError{Line: i + 1, Level: 0, Reason: "a value is listed twice"}
		}
		seen[v] = true
		paths[i] = []string{v}
	}
	groupOf := make([]int, len(o.Values))
	for i := range groupOf {
		groupOf[i] = i
	}
	for j, size := range o.Sizes {
		if size < 2 {
			return nil, &HierarchyError{
				Level:  j + 1,
				Reason: fmt.Sprintf("groups of %d, at least 2 are needed", size),
			}
		}
		for i := range groupOf {
			groupOf[i] /= size
		}
		if err := o.label(paths, groupOf, j); err != nil {
			return nil, err
		}
	}
	return Listed(paths, values, withNull)
}

// label appends the labels of level j+1 to the paths.
func (o Ordering) label(paths [][]string, groupOf []int, j int) error {
	groups := 0
	if len(groupOf) > 0 {
		groups = groupOf[len(groupOf)-1] + 1
	}
	first, last := make([]int, groups), make([]int, groups)
	for i := len(groupOf) - 1; i >= 0; i-- {
		first[groupOf[i]] = i
	}
	for i, g := range groupOf {
		last[g] = i
	}
	var given []string
	if j < len(o.Labels) {
		given = o.Labels[j]
	}
	if given != nil && len(given) != groups {
		return &HierarchyError{Level: j + 1, Reason: fmt.Sprintf("%d labels for %d groups", len(given),
			groups)}
	}
	for i, g := range groupOf {
		label := o.Values[first[g]] + " - " + o.Values[last[g]]
		if first[g] == last[g] {
			label = o.Values[first[g]]
		}
		if given != nil {
			label = given[g]
		}
		paths[i] = append(paths[i], label)
	}
	return nil
}
