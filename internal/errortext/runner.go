package errortext

import (
	"regexp"
	"strings"
)

var (
	// runnerLine is a line of what started a program that failed: npm, Yarn, pnpm, Bun,
	// Cargo, Go, make, just, Turborepo, Docker Compose.
	runnerLine = regexp.MustCompile(`^(?:npm (?:error|ERR!)(?: |$)|lerna ERR! |error Command failed with |` +
		`\s*ELIFECYCLE\s|\s*ERR_PNPM_RECURSIVE_|info Visit https://yarnpkg|` +
		`error: script ".*" (?:exited|was terminated)|error: process didn't exit successfully: |exit status \d+$|\[nodemon\] app crashed|` +
		`make(?:\[\d+\])?: \*\*\* .* Error \d+|error: Recipe .* failed |\s*ERROR +run failed: command +exited |\S+ exited with code \d+$)`)

	// runnerBegin is a line with which a runner says what it starts, or what else it knows.
	runnerBegin = regexp.MustCompile(`^(?:npm (?:warn|WARN|notice)|yarn run v\d|> \S+@\d\S* \S|\$ \S+ )`)
)

// withoutRunner leaves out the lines of what started a program. They say that it failed,
// and the program itself says why. Without such lines, runner is nil.
func withoutRunner(text string) (said string, runner []string) {
	var kept []string
	for line := range strings.SplitSeq(text, "\n") {
		switch {
		case runnerLine.MatchString(line):
			runner = append(runner, line)
		case !runnerBegin.MatchString(line):
			kept = append(kept, line)
		}
	}
	if runner == nil {
		return text, nil
	}
	return strings.Join(kept, "\n"), runner
}

// npmField is a line of npm with something about the error, but not the error.
var npmField = regexp.MustCompile(`^(?:code|errno|syscall|path|dest|file|workspace|location|command|signal|` +
	`Lifecycle script|A complete log)\b`)

// ofRunner is the error of a runner for which the program said nothing. npm writes the
// code before each sentence about it.
func ofRunner(lines []string) string {
	code := ""
	for _, line := range lines {
		_, said, _ := strings.Cut(strings.TrimPrefix(line, "npm "), " ")
		if named, ok := strings.CutPrefix(said, "code "); ok {
			code = strings.ToLower(named)
		}
		first, rest, _ := strings.Cut(said, " ")
		if first != "" && strings.HasSuffix(code, first) {
			said = rest
		}
		if strings.HasPrefix(line, "npm ") && said != "" && !npmField.MatchString(said) {
			return said
		}
	}
	return strings.TrimSpace(lines[0])
}
