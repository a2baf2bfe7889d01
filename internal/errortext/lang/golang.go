package lang

import (
	"redrive/internal/errortext/form"
	"regexp"
	"slices"
	"strings"
)

// golang reads what programs in Go write when they crash, errors that carry a stack, and
// what builds and tests them.
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
		if class == "" || class == "fatal error" && last < 0 { // other programs write this, too
			continue
		}

		said, rest := panicLines(lines[i:])
		if i < last || strings.TrimSpace(strings.Join(rest[:min(len(rest), 2)], "")) == "" {
			found = goPanic(class, said)
		}
	}

	return found
}

// crashes is what a line says that ended the program, or empty.
func crashes(line string) string {
	for _, class := range [...]string{"panic", "fatal error"} {
		if strings.HasPrefix(line, class+": ") {
			return class
		}
	}

	return ""
}

// lastGoroutine is the last line with which the stack of a goroutine begins, or -1.
func lastGoroutine(lines []string) int {
	for i, line := range slices.Backward(lines) {
		if strings.HasPrefix(line, "goroutine ") {
			return i
		}
	}

	return -1
}

// panicLines are the lines of a panic before the first stack, and those that follow.
func panicLines(lines []string) (said, rest []string) {
	for i, line := range lines[1:] {
		if line == "" || strings.HasPrefix(line, "goroutine ") || strings.HasPrefix(line, "[signal ") || crashes(line) != "" {
			return lines[:1+i], lines[1+i:]
		}
	}

	return lines, nil
}

// goPanic reads the values of a panic: one that was recovered led to the one below it.
// Further lines of a value are indented.
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

// goStacked reads an error that carries the stack of where it was made, and below that the
// errors that wrapped it, each with a stack.
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

// untilTest is what testify compared, up to the name of the test.
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
