package fingerprint

import (
	"bufio"
	"os"
	"strings"
	"testing"
)

// told is an error text and the cause under which a person put it.
type told struct{ cause, message, trace, group string }

// readCauses reads a file of testdata: its head says what the form is.
func readCauses(t *testing.T, name string) (all []told) {
	t.Helper()
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	for cause := ""; lines.Scan(); {
		line := lines.Text()
		if name, ok := strings.CutPrefix(line, "== "); ok {
			cause = name
		} else if line != "" && !strings.HasPrefix(line, "#") {
			message, trace, _ := strings.Cut(strings.ReplaceAll(line, `\n`, "\n"), " ||| ")
			all = append(all, told{cause, message, trace, Of("t", "error", message, trace).Fingerprint})
		}
	}
	if lines.Err() != nil {
		t.Fatal(lines.Err())
	}
	return all
}

// pairwise compares groups with causes, by every pair of texts. Precision is which
// part of the pairs in one group has one cause, recall which part of the pairs with
// one cause is in one group.
func pairwise(t *testing.T, all []told) (precision, recall float64) {
	var grouped, caused, both float64
	split := map[string]bool{} // causes that were told
	for i, a := range all {
		for _, b := range all[:i] {
			together, alike := a.group == b.group, a.cause == b.cause
			grouped, caused, both = grouped+share(together), caused+share(alike), both+share(together && alike)
			switch {
			case together && !alike:
				t.Logf("one group, but two causes:\n\t%q\n\t%q", a.message, b.message)
			case alike && !together && !split[a.cause]:
				split[a.cause] = true
				t.Logf("one cause, but two groups:\n\t%q\n\t%q\n\t%q\n\t%q", a.message, Normalise(a.message), b.message, Normalise(b.message))
			}
		}
	}
	return both / grouped, both / caused
}

func share(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

// The bounds are what is reached; a rule that costs more than it brings falls
// below them.
func TestOf_GroupsAsAPersonWould(t *testing.T) {
	for _, c := range []struct {
		name              string
		file              string
		precision, recall float64
	}{
		{"texts that the rules were made with", "testdata/causes.txt", 0.99, 0.94},
		{"texts that they were not made with", "testdata/causes_heldout.txt", 0.99, 0.94},
	} {
		t.Run(c.name, func(t *testing.T) {
			all := readCauses(t, c.file)
			precision, recall := pairwise(t, all)
			t.Logf("%d texts: precision %.3f, recall %.3f", len(all), precision, recall)
			if precision < c.precision || recall < c.recall {
				t.Errorf("precision %.3f and recall %.3f, want at least %.2f and %.2f", precision, recall, c.precision, c.recall)
			}
		})
	}
}
