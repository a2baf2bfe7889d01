package invalid

// Nearest is the name that was probably meant by another one: the first of those
// that differ from it by the fewest letters, one, or two of a longer name. It is
// empty when there is none.
func Nearest(name string, names []string) string {
	best, distance := "", 2
	if len(name) > 4 {
		distance = 3
	}
	for _, n := range names {
		if d := editDistance(name, n); d < distance {
			best, distance = n, d
		}
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
