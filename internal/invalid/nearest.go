package invalid

import "strings"

// Nearest is the name that was probably meant by another one: the first of those
// that differ from it by the fewest letters, one, or two of a longer name; otherwise
// the only one that it begins, with three letters or more. It is empty when there is
// none.
func Nearest(name string, names []string) string {
	best, distance := "", 2
	if len(name) > 4 {
		distance = 3
	}

	var begun []string
	for _, n := range names {
		if strings.HasPrefix(n, name) {
			begun = append(begun, n)
		}

		if len(name)-len(n) >= distance { // also a name of a megabyte takes no time
			continue
		}

		if d := editDistance(name, n); d < distance {
			best, distance = n, d
		}
	}

	if best == "" && len(begun) == 1 && len(name) > 2 {
		return begun[0]
	}

	return best
}

// DidYouMean is the question whether another name was meant, as a part of an error;
// empty when there is none that is like it.
func DidYouMean(name string, names []string) string {
	if best := Nearest(name, names); best != "" {
		return "; did you mean " + best + "?"
	}
	return ""
}

// editDistance is how many letters have to be changed, added or removed to turn
// one word into the other.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}

	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}

			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}

	return row[len(b)]
}
