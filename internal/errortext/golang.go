package errortext

import (
	"slices"
	"strings"
)

// golang reads the last panic or fatal error of a program in Go.
func golang(text string) Error {
	var found Error
	lines := strings.Split(text, "\n")
	last := lastGoroutine(lines)
	for i, line := range lines {
		class, _, ok := strings.Cut(line, ": ")
		if !ok || class != "panic" && class != "fatal error" {
			continue
		}
		said, rest := panicLines(lines[i:])
		if i < last || strings.TrimSpace(strings.Join(rest[:min(len(rest), 2)], "")) == "" {
			found = goPanic(class, said)
		}
	}
	return found
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
	for i, line := range lines {
		if line == "" || strings.HasPrefix(line, "goroutine ") || strings.HasPrefix(line, "[signal ") {
			return lines[:i], lines[i:]
		}
	}
	return lines, nil
}

// goPanic reads the values of a panic: one that was recovered led to the one below it.
// Further lines of a value are indented.
func goPanic(class string, lines []string) Error {
	var values []string
	continued := 0
	for _, line := range lines {
		line = strings.TrimPrefix(line, "\t")
		value, begins := strings.CutPrefix(line, class+": ")
		switch {
		case begins || len(values) == 0:
			values = append(values, value)
			continued = 0
		case continued < maxContinued:
			values[len(values)-1] += "\n" + line
			continued++
		}
	}

	for i, value := range values {
		value = strings.TrimSuffix(value, " [recovered]")
		values[i] = strings.TrimSuffix(value, " [recovered, repanicked]")
	}
	e := Error{Class: class, Message: values[len(values)-1]}
	return e.because("", values[0])
}
