package errortext_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"redrive/internal/errortext"
	"redrive/internal/fingerprint"
	"redrive/internal/plaintext"
)

// sample is a text of the corpus: what a program printed, the cause under which a person
// puts it, and the class and message that a person reads out of it.
type sample struct {
	place string // of the text, in testdata/corpus
	cause string

	class, message string
	text           string
}

// readCorpus reads the texts of a language. Each begins with a line "=== CAUSE", the lines
// "class: …" and "message: …", of which a further line of a message begins with "  ", and
// "---"; the text itself is what follows, up to the next "=== ". Lines before the first
// text are remarks.
func readCorpus(t *testing.T, name string) (all []sample) {
	t.Helper()
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}

	_, entries, _ := strings.Cut("\n"+string(content), "\n=== ")
	for n, entry := range strings.Split(entries, "\n=== ") {
		head, text, ok := strings.Cut(entry, "\n---\n")
		s := sample{place: fmt.Sprintf("%s, text %d", filepath.Base(name), n+1), text: text}
		if !ok {
			t.Fatalf("%s has no line \"---\"", s.place)
		}

		for i, line := range strings.Split(head, "\n") {
			name, value, _ := strings.Cut(line, ": ")
			switch {
			case i == 0:
				s.cause = line
			case name == "class":
				s.class = value
			case name == "message":
				s.message = value
			case strings.HasPrefix(line, "  "):
				s.message += "\n" + line[2:]
			default:
				t.Fatalf("%s: %q is no class and no message", s.place, line)
			}
		}
		all = append(all, s)
	}
	return all
}

// score is how well the texts of one language are read.
type score struct {
	texts, classes, messages int

	grouped, caused, both int // pairs of texts: in one group, of one cause, and both
}

// judge reads the texts of a language as the errors of programs.
func judge(t *testing.T, all []sample) (s score) {
	groups := make([]string, len(all))
	for i, one := range all {
		e := errortext.Program(one.text, "")
		groups[i] = fingerprint.Of("job", "exec.exit_1", e.String(), plaintext.Plain(one.text)).Fingerprint

		s.texts++
		if e.Class == one.class {
			s.classes++
		} else {
			t.Errorf("%s: the class is %q, want %q", one.place, e.Class, one.class)
		}
		if e.Message == one.message {
			s.messages++
		} else {
			t.Logf("%s: the message is\n\t%q, want\n\t%q", one.place, e.Message, one.message)
		}
	}

	for i, a := range all {
		for j, b := range all[:i] {
			together, alike := groups[i] == groups[j], a.cause == b.cause
			s.grouped += count(together)
			s.caused += count(alike)
			s.both += count(together && alike)
			if together != alike {
				t.Logf("%s and %s: one group is %t, one cause is %t", a.place, b.place, together, alike)
			}
		}
	}
	return s
}

func count(is bool) int {
	if is {
		return 1
	}
	return 0
}

// TestCorpus_IsReadAsAPersonReadsIt prints, with -v, a table of how well the texts of each
// language are read. Precision is which part of the pairs in one group has one cause,
// recall which part of the pairs of one cause is in one group.
func TestCorpus_IsReadAsAPersonReadsIt(t *testing.T) {
	files, err := filepath.Glob("testdata/corpus/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("there is no corpus: %v", err)
	}

	var table strings.Builder
	fmt.Fprintf(&table, "%-12s %5s %7s %8s %9s %6s\n", "language", "texts", "classes", "messages", "precision", "recall")
	for _, file := range files {
		language := strings.TrimSuffix(filepath.Base(file), ".txt")
		t.Run(language, func(t *testing.T) {
			s := judge(t, readCorpus(t, file))
			precision, recall := part(s.both, s.grouped), part(s.both, s.caused)
			fmt.Fprintf(&table, "%-12s %5d %7d %8d %9.3f %6.3f\n", language, s.texts, s.classes, s.messages, precision, recall)
			if precision < 1 || recall < 0.97 || part(s.messages, s.texts) < 0.95 {
				t.Errorf("precision %.3f, recall %.3f, and %d of %d messages; want 1, 0.97 and 95 %%", precision, recall, s.messages, s.texts)
			}
		})
	}
	t.Log("\n" + table.String())
}

// part is 1 of nothing.
func part(n, of int) float64 {
	if of == 0 {
		return 1
	}
	return float64(n) / float64(of)
}
