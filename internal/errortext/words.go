package errortext

import "strings"

// containsAny reports whether one of some texts is in a line.
func containsAny(line string, texts []string) bool {
	for _, text := range texts {
		if strings.Contains(line, text) {
			return true
		}
	}
	return false
}

// beginsWithAny reports whether a line begins with one of some texts.
func beginsWithAny(line string, texts []string) bool {
	for _, text := range texts {
		if strings.HasPrefix(line, text) {
			return true
		}
	}
	return false
}

// lastAfter is what follows some words at the beginning of the last line that begins with
// them.
func lastAfter(lines []string, words string) (last string) {
	for _, line := range lines {
		after, ok := strings.CutPrefix(line, words)
		if ok {
			last = after
		}
	}
	return last
}
