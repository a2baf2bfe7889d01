package main

import (
	"strings"
	"testing"
)

// Where some of several causes passed, the command says how to go on with those alone.
func TestReplay_SaysHowToGoOnWithWhatPassed(t *testing.T) {
	t.Parallel()
	m := startMill(t)
	m.letters(20)
	m.lettersOf(3, "corn.spoiled")
	m.fixed.Store(true)

	code, out, problems := finish(t, command(t, t.TempDir(), "replay", "--server", m.url, "--filter", "state:dead_letter", "--canary", "5", "--yes"))
	post := "curl -X POST " + m.url + "/api/v1/operations/1/"
	want := "\n  to resume it: " + post + "resume\n  to resume only the 1 of 2 causes that passed: " + post + "resume-passed\n  to abort it: " + post + "abort\n"
	if code != 1 || !strings.Contains(problems, "its canary failed: 4 of 5 succeeded.") || !strings.Contains(problems, want) {
		t.Errorf("exit %d, %s%s\nwant %s", code, out, problems, want)
	}
}
