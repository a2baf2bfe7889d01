package lang

import (
	"redrive/internal/errortext/form"
	"regexp"
	"slices"
	"strings"
)

// golang reads what programs in Go write when they crash, errors that are printed with a stack, and the
// output of "go test" and "go build".
func golang(text string) form.Error {
	for _, read := range [...]func([]string) form.Error{goCrash, goStacked, goTest, goBuild} {
		if e := read(strings.Split(text, "\n")); e.Found() {
			return e
		}
	}

	return form.Error{}
}

// goCrash reads the last panic, fatal error or signal.
func goCrash(lines []string) form.Error {
	var found form.Error
	last := lastGoroutine(lines)
	for i, line := range lines {
		if strings.HasPrefix(line, "PC=") && i > 0 && strings.HasPrefix(lines[i-1], "SIG") {
			found = form.Error{Message: lines[i-1]}
		}

		class := crashes(line)
		if class == "" || class == "fatal error" && last < 0 { // other programs write "fatal error" as well
			continue
		}

		said, rest := panicLines(lines[i:])
		if i < last || strings.TrimSpace(strings.Join(rest[:min(len(rest), 2)], "")) == "" {
			found = goPanic(class, said)
		}
	}

	return found
}

// crashes returns what ended the program according to a line, "panic" or "fatal error", or "".
func crashes(line string) string {
	for _, class := range [...]string{"panic", "fatal error"} {
		if strings.HasPrefix(line, class+": ") {
			return class
		}
	}

	return ""
}

// lastGoroutine returns the number of the last line that begins the stack of a goroutine, or -1.
func lastGoroutine(lines []string) int {
	for i, line := range slices.Backward(lines) {
		if strings.HasPrefix(line, "goroutine ") {
			return i
		}
	}

	return -1
}

// panicLines divides the lines of a panic into those before the first stack and the rest.
func panicLines(lines []string) (said, rest []string) {
	for i, line := range lines[1:] {
		if line == "" || strings.HasPrefix(line, "goroutine ") || strings.HasPrefix(line, "[signal ") || crashes(line) != "" {
			return lines[:1+i], lines[1+i:]
		}
	}

	return lines, nil
}

// goPanic reads the values of a panic. A value that was recovered is the cause of the one below it. The
// further lines of a value are indented.
func goPanic(class string, lines []string) form.Error {
	var values []string
	continued := 0
	for _, line := range lines {
		line = strings.TrimPrefix(line, "\t")
		value, begins := strings.CutPrefix(line, class+": ")
		switch {
		case begins || len(values) == 0:
			values = append(values, value)
			continued = 0
		case continued < form.MaxContinued:
			values[len(values)-1] += "\n" + line
			continued++
		}
	}

	// panic: no rate [recovered]
	for i, value := range values {
		value = strings.TrimSuffix(value, " [recovered]")
		values[i] = strings.TrimSuffix(value, " [recovered, repanicked]")
	}

	e := form.Error{Class: class, Message: values[len(values)-1]}

	return e.Because("", values[0])
}

// IsGoPlace reports whether a line is the place of a frame, below its function.
func IsGoPlace(line string) bool {
	return strings.HasPrefix(line, "\t") && strings.Contains(line, ".go:")
}

// goStacked reads an error that is printed with the stack of where it was made. Below it are the errors
// that wrap it, each with a stack.
func goStacked(lines []string) form.Error {
	var said []string
	for i := 1; i+1 < len(lines); i++ {
		if strings.HasPrefix(lines[i], "goroutine ") {
			return form.Error{}
		}

		begins := !IsGoPlace(lines[i]) && IsGoPlace(lines[i+1]) && !strings.HasPrefix(lines[i-1], "\t")
		_, _, logged := form.Levelled(lines[i-1])
		if begins && !logged && !strings.HasPrefix(lines[i-1], "{") {
			said = append(said, form.WithoutLabel(lines[i-1]))
		}
	}

	if said == nil {
		return form.Error{}
	}

	return form.Error{Message: said[len(said)-1]}.Because("", said[0])
}

// goTest reads the first test that failed: its name, and what it said.
func goTest(lines []string) form.Error {
	for i, line := range lines {
		failed, ok := strings.CutPrefix(line, "--- FAIL: ")
		if !ok || i+1 == len(lines) {
			continue
		}

		name, _, _ := strings.Cut(failed, " (")

		_, said, ok := strings.Cut(lines[i+1], ".go:")
		if !ok {
			continue
		}

		_, said, _ = strings.Cut(said, ": ")
		for j, line := range lines[i+1 : min(len(lines), i+2+form.MaxContinued)] {
			if wrong, ok := strings.CutPrefix(strings.TrimSpace(line), "Error:"); ok { // of testify
				said = strings.TrimSpace(wrong) + untilTest(lines[i+2+j:])
			}
		}

		return form.Error{Message: name + ": " + said}
	}

	return form.Error{}
}

// untilTest returns the lines in which testify shows what it compared, which end before the name of the
// test.
func untilTest(lines []string) string {
	said := ""
	for _, line := range lines[:min(len(lines), form.MaxContinued)] {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "Test:") || strings.HasPrefix(line, "Messages:") || line == "" {
			break
		}

		said += "\n" + line
	}

	return said
}

var goBuildForm = regexp.MustCompile(`^(?:vet: )?\S+\.go:\d+:\d+: (.+)$`)

// goBuild reads the first error of the compiler.
func goBuild(lines []string) form.Error {
	for _, line := range lines {
		if m := goBuildForm.FindStringSubmatch(line); m != nil {
			return form.Error{Message: m[1]}
		}
	}

	return form.Error{}
}
