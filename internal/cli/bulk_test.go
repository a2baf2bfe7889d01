package cli

import (
	"strings"
	"testing"

	"redrive/test/mill"
	"redrive/test/rig"
)

// Where some of several causes passed, the command says how to go on with those alone.
func TestReplay_SaysHowToGoOnWithWhatPassed(t *testing.T) {
	t.Parallel()
	m := mill.Start(t)
	m.DeadLetters(20)
	m.DeadLettersOf(3, "corn.spoiled")
	m.Fixed.Store(true)

	code, out, problems := rig.Finish(t, rig.Command(t, t.TempDir(), "replay", "--server", m.URL, "--filter", "state:dead_letter", "--canary", "5", "--yes"))
	post := "curl -X POST " + m.URL + "/api/v1/operations/1/"
	want := "\n  to resume it: " + post + "resume\n  to resume only the 1 of 2 causes that passed: " + post + "resume-passed\n  to abort it: " + post + "abort\n"
	if code != 1 || !strings.Contains(problems, "its canary failed: 4 of 5 succeeded.") || !strings.Contains(problems, want) {
		t.Errorf("exit %d, %s%s\nwant %s", code, out, problems, want)
	}
}
