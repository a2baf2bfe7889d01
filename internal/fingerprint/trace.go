package fingerprint

import (
	"slices"
	"strings"
)

// maxTrace is how much of a trace is read.
const maxTrace = 8 << 10

// frame is a function on the stack.
type frame struct {
	name   string
	source string // Python: the statement that was running

	own     bool // of the program itself, as far as its place tells
	isFile  bool // the name is that of the file: the function has none
	outside bool // it is outside of any function
}

// frames returns the names of the innermost functions of a trace: those of the program
// itself, and of libraries only if the message does not speak for itself. What a library
// calls its functions changes from release to release.
func frames(trace string, speaks bool) []string {
	if trace == "" {
		return nil
	}

	trace = withoutService(trace)
	p := parser{}
	if chain, ok := pythonCause(trace); ok && !isReversed(trace) { // its end is its top
		p.lines(chain[max(0, len(chain)-maxTrace):])
		slices.Reverse(p.found)
	} else {
		p.lines(trace[:min(len(trace), maxTrace)])
	}

	if len(p.found) == 0 {
		p.found = p.places
	}

	// The functions of the program go before those of libraries. Those with which every program
	// begins, such as main, count only where there are no others.
	own := slices.DeleteFunc(slices.Clone(p.found), func(f frame) bool { return !f.own })
	inner := withoutEntry(own)
	switch {
	case speaks:
		return top(inner)
	case len(inner) > 0:
		return top(withStatement(inner))
	case len(own) > 0:
		return top(withStatement(own))
	}

	return top(oneOfEachFile(p.found))
}

// withStatement names the statement that failed beside the innermost function, where it is
// known: below a bare AssertionError it is all that tells one cause from another.
func withStatement(stack []frame) []frame {
	if stack[0].source != "" {
		stack = slices.Clone(stack)
		stack[0].name = clip(stack[0].name+": "+stack[0].source, maxFrame)
	}

	return stack
}

// oneOfEachFile is a stack of libraries with one function, the innermost, of those in a row
// that are in one file or class: what waits for an answer is below every client of a network.
func oneOfEachFile(stack []frame) []frame {
	place := func(f frame) string { return f.name[:max(0, strings.LastIndexAny(f.name, " ."))] }
	return slices.CompactFunc(slices.Clone(stack), func(a, b frame) bool { return place(a) != "" && place(a) == place(b) })
}

const pythonHead = "Traceback (most recent call last)"

// isReversed reports whether a trace is one of Ruby before 3.0, whose outermost function
// comes first.
func isReversed(trace string) bool {
	_, below, _ := strings.Cut(trace, pythonHead+":\n")
	return reversedFrame(below)
}

// pythonCause is the traceback of the error that began the last chain of errors: those
// before it were survived, and those after it in the chain followed from it. Of a group, the
// first error counts.
func pythonCause(trace string) (text string, ok bool) {
	end := trace[max(0, len(trace)-8*maxTrace):]
	blocks := strings.Split(end, pythonHead)
	if len(blocks) == 1 { // the beginning is cut off
		return end, strings.Contains(end, "\n  File \"")
	}

	first := 1
	for i := 2; i < len(blocks); i++ {
		before := strings.TrimRight(strings.TrimSuffix(blocks[i-1], "Exception Group "), " |\n\r\t")
		if !follows(before[strings.LastIndexByte(before, '\n')+1:]) {
			first = i
		}
	}

	return blocks[first], true
}

// follows reports whether the line before a traceback says that its error is none of the
// program's own: it followed from the one before, is another one of a group, or was ignored.
func follows(line string) bool {
	line = strings.TrimSpace(line)
	another := strings.HasSuffix(line, " ----------------") && !strings.HasSuffix(line, " 1 ----------------")
	return another || strings.Contains(strings.ToLower(line), "the above exception") || strings.Contains(line, "Exception ignored")
}

// withoutEntry is a stack of the program without the functions with which it begins, and
// without the files outside of any function that lead to a function.
func withoutEntry(own []frame) []frame {
	own = slices.DeleteFunc(slices.Clone(own), func(f frame) bool { return isEntry(f.name) })
	if !slices.ContainsFunc(own, func(f frame) bool { return !f.outside }) {
		return own
	}

	for own[len(own)-1].outside {
		own = own[:len(own)-1]
	}

	return own
}

// top takes the first frames, a recursion once.
func top(all []frame) []string {
	var names []string
	for _, f := range all {
		isRecursion := !f.isFile && len(names) > 0 && names[len(names)-1] == f.name
		if isRecursion {
			continue
		}

		names = append(names, f.name)
		if len(names) == MaxFrames {
			break
		}
	}

	return names
}

// isEntry reports whether a function is one with which a program begins. It is below every
// error and tells none from others.
func isEntry(name string) bool {
	name = strings.TrimSuffix(name, "$") // of C#: Program.<Main>$
	last := name[strings.LastIndexAny(name, " .:")+1:]
	return slices.Contains([]string{"main", "Main", "<main>", "<Main>", "{main}", "<module>"}, last) ||
		strings.HasSuffix(name, "<top (required)>") && !strings.Contains(name, "block ")
}
