package cli

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"redrive/test/rig"
)

// suggested runs the program as the scripts do.
func suggested(t *testing.T, words ...string) (texts []string) {
	t.Helper()
	code, stdout, stderr := rig.Finish(t, rig.Command(t, t.TempDir(), append([]string{"suggest", "--"}, words...)...))
	if code != 0 || stderr != "" {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	for line := range strings.Lines(stdout) {
		text, _, _ := strings.Cut(line, "\t")
		texts = append(texts, text)
	}
	return texts
}

func TestSuggest_KnowsCommandsFlagsAndValues(t *testing.T) {
	for words, want := range map[string]string{
		"enq":                      "enqueue",
		"user r":                   "role remove",
		"user add --ro":            "--role",
		"list --j":                 "--json",
		"--log-f":                  "--log-format",
		"--log-format ":            "text json",
		"serve --log-format j":     "json",
		"--log-format = j":         "json", // bash splits --log-format=j like this
		"--log-format=json enq":    "enqueue",
		"--config enqueue enq":     "enqueue",
		"completion ":              "bash zsh fish",
		"completion bash ":         "",
		"enqueue t --conf":         "",
		"sugg":                     "",
		"enqueue --server list --": "--help --server --key --json --ndjson --batch-size --queue --delay --run-at --ttr --policy --priority --version",
	} {
		got := suggested(t, strings.Split(words, " ")...)
		if strings.HasSuffix(words, " --") { // the order of flags is no promise
			for _, flag := range strings.Fields(want) {
				if !strings.Contains(" "+strings.Join(got, " ")+" ", " "+flag+" ") {
					t.Errorf("%q: %s is missing in %v", words, flag, got)
				}
			}
			continue
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q: %v, want %s", words, got, want)
		}
	}
}

// Each shell that is installed reads its script and completes a command with it.
func TestCompletion_WorksInItsShell(t *testing.T) {
	for shell, script := range map[string]string{
		"bash": `eval "$(dashboard completion bash)"; COMP_WORDS=(dashboard user rem); COMP_CWORD=2; _dashboard; echo "${COMPREPLY[@]}"`,
		"zsh": `_describe() { print -l -- ${(P)2}; }; compdef() { :; }; eval "$(dashboard completion zsh)";
			words=(dashboard user rem); CURRENT=3; _dashboard`,
		"fish": `dashboard completion fish | source; complete -C "dashboard user rem"`,
	} {
		t.Run(shell, func(t *testing.T) {
			path, err := exec.LookPath(shell)
			if err != nil {
				t.Skipf("%s is not installed", shell)
			}
			program := rig.Command(t, t.TempDir())
			cmd := exec.Command(path, "-c", script)
			cmd.Env = append(program.Env, "PATH="+filepath.Dir(program.Path)+":/usr/bin:/bin", "HOME="+program.Dir)
			code, stdout, stderr := rig.Finish(t, cmd)
			if fields := strings.FieldsFunc(stdout, func(r rune) bool { return strings.ContainsRune(" \t:\n", r) }); code != 0 ||
				len(fields) == 0 || fields[0] != "remove" {
				t.Errorf("exit %d: %s%s", code, stdout, stderr)
			}
		})
	}
}
