package errortext

import (
	"redrive/internal/errortext/form"
	"regexp"
	"slices"
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

// runnerWords are in the lines of runners: each match of runnerLine has one of them. A search
// for them in the whole text costs far less than the pattern does on each line.
var runnerWords = []string{
	"npm ", "lerna ERR! ", "error Command failed with ", "ELIFECYCLE", "ERR_PNPM_RECURSIVE_", "info Visit https://yarnpkg",
	"error: script ", "error: process didn't exit successfully: ", "exit status ", "[nodemon] app crashed", ": *** ",
	"error: Recipe ", "run failed: command", "exited with code ",
}

// withoutRunner leaves out the lines of what started a program. They say that it failed,
// and the program itself says why. Without such lines, runner is nil.
func withoutRunner(text string) (said string, runner []string) {
	if !form.ContainsAny(text, runnerWords) {
		return text, nil
	}

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

var (
	usageLine = regexp.MustCompile(`^\s*(?:(?i:usage):|Usage of \S+:$|NAME:$|\$ yarn run |\(Did you mean |` +
		`\s+--help\s+Display this help screen|For more information,? try |(?:Run|Try|See|Use) ['"\x60].*--?h(?:elp)?['"\x60])`)
	errorHeading = regexp.MustCompile(`^(?i:errors?|error\(s\)):\s*$`)
)

// usage reads what a program says of its arguments or of anything else before it explains
// how it is called, or behind that.
func usage(text string) Error {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if !usageLine.MatchString(line) || form.BeginsError(line) {
			continue
		}

		// What is wrong stands above the usage, or behind it as an error or an entry of Go's
		// log.
		behind := slices.IndexFunc(lines[i+1:], func(line string) bool { return form.BeginsError(line) || form.StdLogTime(line) != "" })
		said := lines[:i]
		if behind >= 0 {
			said = lines[i+1+behind:]
		}

		if behind >= 0 {
			if time := form.StdLogTime(said[0]); time != "" {
				return Error{Message: said[0][len(time):] + form.Continued(said[1:])}
			}
		}

		return Error{Message: underHeading(said)}
	}

	return Error{}
}

// underHeading is the error in some lines: the first one below the last heading of errors, or
// else the likeliest.
func underHeading(lines []string) string {
	for i, line := range slices.Backward(lines) {
		if !errorHeading.MatchString(line) {
			continue
		}

		for _, below := range lines[i+1:] {
			if strings.TrimSpace(below) != "" {
				return strings.TrimSpace(below)
			}
		}
	}

	return likeliest(strings.Join(lines, "\n"))
}
