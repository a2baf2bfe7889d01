package lang

import (
	"redrive/internal/errortext/form"
	"regexp"
	"slices"
	"strings"
)

// aspnetText reads the developer's exception page. The headers below the stack are
// no part of the error.
func aspnetText(text string) form.Error {
	trace, _, ok := strings.Cut(text, "\nHEADERS\n=======\n")
	if !ok {
		return form.Error{}
	}

	e := dotnetTrace(trace)
	e.Trace = trace

	return e
}

// dotnet reads what programs for .NET write, and those that build and start them.
func dotnet(text string) form.Error {
	for _, read := range [...]func(string) form.Error{vstest, dotnetTrace, powershell} {
		if e := read(text); e.Found() {
			return e
		}
	}

	for line := range strings.SplitSeq(text, "\n") {
		for _, end := range dotnetEnds {
			if m := end.FindStringSubmatch(line); m != nil {
				return form.Error{Class: m[1], Message: m[2]}
			}
		}
	}

	return form.Error{}
}

// dotnetEnds are what the runtime, its host and its compilers say without a stack.
var dotnetEnds = [...]*regexp.Regexp{
	regexp.MustCompile(`^\s*\S[^:]*: error ((?:CS|FS|BC|MSB|NU|NETSDK|CA)\d+): (.*?)(?: \[[^\[\]]*proj(?:::[^\[\]]*)?\])?$`),
	regexp.MustCompile(`^(Process terminated|Fatal error)\. (.+)$`),
	regexp.MustCompile(`^()(Stack overflow\.|Out of memory\.|` +
		`You must install or update \.NET to run this application\.|Unable to create a 'DbContext' of type .*)$`),
}

// dotnetTrace reads the last stack trace. The causes of an error are printed after arrows, before the
// first frame, with the innermost cause last.
func dotnetTrace(text string) form.Error {
	var last form.Error
	blocks(text, dotnetFrame, func(block []string, framed bool) {
		head, ok := dotnetHead(block, framed)
		switch {
		case ok:
			last = dotnetError(block[head:])
		case framed && !last.Found(): // its beginning may be cut off
			cause, _ := thrown(dotnetCause("", block))
			last = form.Error{Class: cause.class, Message: cause.message}
		}
	})

	return last
}

// dotnetHead is the line on which the error begins that some frames follow. Without
// frames, it is one that no one caught.
func dotnetHead(lines []string, framed bool) (at int, ok bool) {
	var head heads
	for i, line := range lines {
		trimmed := strings.TrimSpace(line)
		if strings.HasPrefix(trimmed, "---> ") {
			break
		}

		uncaught := uncaughtPrefix(line) != ""
		outer, _, _ := strings.Cut(trimmed, " ---> ")

		t, ok := thrown(strings.TrimPrefix(outer, uncaughtPrefix(line)))
		if ok && (uncaught || framed && (t.sure || strings.Contains(t.class, "."))) {
			head.add(i, line, t)
		}
	}

	return head.line, head.found
}

// uncaughtPrefix is what the runtime writes before an error that no one caught.
func uncaughtPrefix(line string) string {
	for _, prefix := range [...]string{"Unhandled exception. ", "Unhandled Exception: ", "Unhandled exception: "} {
		if strings.HasPrefix(line, prefix) {
			return prefix
		}
	}

	return ""
}

// dotnetError reads an error and its causes, which follow after arrows.
func dotnetError(lines []string) form.Error {
	first := strings.TrimSpace(strings.TrimPrefix(lines[0], uncaughtPrefix(lines[0])))
	outer, inner, _ := strings.Cut(first, " ---> ")
	t, _ := thrown(outer)

	e := form.Error{Class: t.class, Message: t.message}
	if inner == "" {
		e.Message += form.Continued(withoutCauses(lines[1:]))
	}

	cause, _ := thrown(dotnetCause(inner, lines[1:]))

	return e.Because(cause.class, cause.message)
}

// dotnetCause is what stands behind the last arrow, on a line of several of them or on
// lines of their own.
func dotnetCause(inner string, lines []string) string {
	for i, line := range lines {
		if arrow, ok := strings.CutPrefix(strings.TrimSpace(line), "---> "); ok {
			inner = withHeading(arrow, lines[i+1:])
		}
	}

	if i := strings.LastIndex(inner, " ---> "); i >= 0 {
		inner = inner[i+len(" ---> "):]
	}

	if _, after, ok := strings.Cut(inner, "(Inner Exception #"); ok {
		_, inner, _ = strings.Cut(after, ") ")
	}

	return inner
}

// withoutCauses ends before what .NET says of the errors that led to one.
func withoutCauses(lines []string) []string {
	for i, line := range lines {
		if strings.HasPrefix(strings.TrimSpace(line), "---> ") {
			return lines[:i]
		}
	}

	return lines
}

// dotnetAt are the words before a frame in the languages of .NET Framework.
var dotnetAt = []string{"at", "bei", "à", "en", "em", "in", "w", "v", "в", "場所", "在"}

// dotnetFrame reports whether a line is one of a stack trace: "at Type.Method(Int32 order)
// in /src/File.cs:line 12", or a line between two stacks.
func dotnetFrame(line string) bool {
	s := strings.TrimSpace(line)
	if strings.HasPrefix(s, "--- End of ") {
		return true
	}

	at, s, ok := strings.Cut(s, " ")
	if !ok || !slices.Contains(dotnetAt, at) || at != "at" && form.Indent(line) == 0 || javaFrame(line) {
		return false
	}

	name, rest, ok := strings.Cut(s, "(")
	if !ok || strings.Contains(name, " ") || !strings.Contains(name, ".") && !strings.HasPrefix(name, "lambda_method") {
		return false
	}

	return strings.HasSuffix(rest, ")") || strings.Contains(rest, ") in ") || strings.Contains(rest, ") +")
}

// vstest reads the first test that failed.
func vstest(text string) form.Error {
	_, report, ok := strings.Cut(text, "\n  Error Message:\n")
	if !ok {
		return form.Error{}
	}

	said, _, _ := strings.Cut(report, "\n  Stack Trace:")

	return form.Error{Message: firstLines(said)}
}

// powershell reads the last error of PowerShell: below the line of the script, and below
// what marks a part of it.
func powershell(text string) form.Error {
	i := strings.LastIndex(text, "\nLine |\n")
	if i < 0 {
		return form.Error{}
	}

	var said []string
	marked := false
	for line := range strings.SplitSeq(text[i+len("\nLine |\n"):], "\n") {
		_, behind, ok := strings.Cut(line, "| ")
		switch {
		case !ok || len(said) > form.MaxContinued:
			return form.Error{Message: strings.Join(said, "\n")}
		case marked:
			said = append(said, strings.TrimSpace(behind))
		case strings.Trim(behind, " ~") == "":
			marked = true
		}
	}

	return form.Error{Message: strings.Join(said, "\n")}
}
