package lang

import (
	"strings"

	"redrive/internal/errortext/form"
)

// cutTraceback reads a traceback without a head: that of a file that cannot be parsed, and
// one whose beginning is missing.
//
//	  File "/app/job.py", line 3
//	    def rate(:
//	             ^
//	SyntaxError: invalid syntax
func cutTraceback(lines []string) (found form.Error) {
	i := 0
	for i < len(lines) {
		trimmed := strings.TrimLeft(lines[i], " ")
		if !strings.HasPrefix(trimmed, `File "`) || !strings.Contains(trimmed, `", line `) {
			i++
			continue
		}

		indent := max(0, len(lines[i])-len(trimmed)-len("  "))

		e, end := pythonError(lines, i+1, strings.Repeat(" ", indent))
		if e.Found() {
			found = e
		}

		i = max(end, i+1)
	}

	return found
}

// argparse reads what a parser of arguments, or Click, says below its usage:
//
//	usage: job [-h] --feed FEED
//	job: error: the following arguments are required: --feed
//
//	Try 'job --help' for help.
//
//	Error: Missing argument 'FEED'.
func argparse(lines []string) (found form.Error) {
	usage, click := false, false
	for i, line := range lines {
		usage = usage || strings.HasPrefix(line, "usage: ")
		click = click || strings.HasPrefix(line, "Try ") && strings.HasSuffix(line, " for help.")

		_, message, ok := strings.Cut(line, ": error: ")
		ok = ok && usage
		if click && !ok {
			message, ok = strings.CutPrefix(line, "Error: ")
		}

		if ok {
			found = form.Error{Message: message + pythonContinued(lines[i+1:], "")}
		}
	}

	return found
}

// clickBox reads the box that Rich draws around an error of Click:
//
//	╭─ Error ──────────────────────────╮
//	│ Missing argument 'FEED'.         │
//	╰──────────────────────────────────╯
func clickBox(lines []string) form.Error {
	for i, line := range lines {
		if !strings.HasPrefix(line, "╭─ Error ─") {
			continue
		}

		var said []string
		for _, line := range lines[i+1:] {
			inside, ok := strings.CutPrefix(line, "│")
			if !ok || len(said) > form.MaxContinued {
				break
			}

			said = append(said, strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(inside), "│")))
		}

		return form.Error{Message: strings.Join(said, " ")}
	}

	return form.Error{}
}

// djangoCommand reads what manage.py says without a traceback. Of the checks of a project
// the first one that failed says what is wrong.
func djangoCommand(lines []string) (found form.Error) {
	for i, line := range lines {
		class, message, _ := strings.Cut(line, ": ")
		switch class {
		case "CommandError":
			found = form.Error{Class: class, Message: message + pythonContinued(lines[i+1:], "")}
		case "SystemCheckError":
			found = form.Error{Class: class, Message: message}
			for j, line := range lines[i:] {
				if line == "ERRORS:" {
					found.Message += form.Continued(lines[i+j+1:])
					break
				}
			}

			return found
		}
	}

	return found
}

// pipMarks are in what pip says of a package that it cannot install.
var pipMarks = [...]string{
	"Could not find a version that satisfies the requirement ", "No matching distribution found for ", "ResolutionImpossible",
	"Could not install packages due to ", "Could not open requirements file", "Cannot install ", "Invalid requirement: ",
	"Failed building wheel for ", "No module named pip", "externally-managed-environment", "Could not build wheels for ",
}

// pip reads the first error of several that pip prints, which are of one cause, or what
// another program said that pip ran.
func pip(lines []string) form.Error {
	for i, line := range lines {
		line = strings.TrimSpace(line)

		message, ok := strings.CutPrefix(line, "ERROR: ")
		if ok && form.ContainsAny(message, pipMarks[:]) {
			return form.Error{Message: message}
		}

		if line == "[end of output]" && i > 0 {
			return form.Error{Message: strings.TrimSpace(lines[i-1])}
		}

		reason, ok := strings.CutPrefix(line, "× ")
		if ok && i > 1 && lines[i-2] == "error: externally-managed-environment" {
			return form.Error{Message: reason}
		}
	}

	return form.Error{}
}
