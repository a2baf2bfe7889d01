package fingerprint

import (
	"strings"
)

// parser gathers the frames of a trace, line by line.
type parser struct {
	found  []frame
	places []frame // files with a line in text that is no frame
	call   string  // Go: the function whose place is on the next line
	inside string  // PHP: where the function of the next line is
	rust   string  // Rust: the function whose place is on the next line
	over   bool    // the rest is who started it

	callers []frame // Ruby: of the error whose line follows, the outermost first
	ended   bool    // and it came: those that follow in the trace were caused by it

	statement bool // Python: the statement of the newest frame is on the next line

	apart    bool // a line of text stands before the next frame: another error
	panicked bool // Go: it is that of a panic
}

func (p *parser) lines(trace string) {
	for line := range strings.SplitSeq(trace, "\n") {
		p.line(strings.TrimRight(line, "\r"))

		if p.over {
			return
		}
	}
}

// withoutService is a trace without what Docker Compose writes before each line:
// "worker-1  | ".
func withoutService(trace string) string {
	line, _, _ := strings.Cut(trace, "\n")
	name, _, ok := strings.Cut(line, " | ")
	if !ok || name == "" || strings.Contains(strings.TrimRight(name, " "), " ") {
		return trace
	}

	prefix := name + " | "

	return strings.ReplaceAll(strings.TrimPrefix(trace, prefix), "\n"+prefix, "\n")
}

// line takes over what one line says, by its form.
func (p *parser) line(line string) {
	call := p.call
	p.call = ""
	if call != "" && strings.HasPrefix(line, "\t") && (strings.HasSuffix(call, ")") || goPlace(line)) {
		p.goFrame(call, line[1:])
		return
	}

	trimmed := strings.TrimLeft(line, " \t")
	isGrouped := p.groups(trimmed)
	if isGrouped {
		trimmed = strings.TrimLeft(trimmed, "|+- \t")
	}
	// Below a frame of Python stands its statement, unless the source is not there.
	if p.statement {
		p.statement = false
		if trimmed != line && !isGrouped && !strings.HasPrefix(trimmed, `File "`) {
			p.found[len(p.found)-1].source = strings.TrimSpace(trimmed)
			return
		}
	}

	switch {
	case trimmed == "":
	case strings.HasPrefix(trimmed, "goroutine "):
		p.over = len(p.found) > 0 && !p.apart // the stacks of the others follow
	case line == pythonHead+":": // of Ruby: another trace
		p.callers, p.ended, p.apart = nil, false, true
	case strings.HasPrefix(trimmed, "panic: "), strings.HasPrefix(trimmed, "fatal error: "):
		p.apart, p.panicked = true, true
	case strings.HasPrefix(trimmed, "created by "):
		p.over = true
	case strings.HasPrefix(trimmed, "Caused by:"), strings.HasPrefix(trimmed, "panic("):
		p.found, p.apart = p.found[:0], false // what follows is nearer to the cause
	case strings.HasPrefix(trimmed, "at ") && p.rust != "":
		p.rustFrame(trimmed[len("at "):])
	case strings.HasPrefix(trimmed, "at "):
		p.atFrame(strings.TrimPrefix(trimmed[len("at "):], "async "))
	case strings.HasPrefix(trimmed, `File "`):
		p.pythonFrame(trimmed[len(`File "`):])
	case trimmed[0] == '#' && isDigit(at(trimmed, 1)):
		p.phpFrame(trimmed)
	case p.rustName(line):
	case p.elixirFrame(trimmed):
	case strings.Contains(trimmed, ":in "):
		p.rubyFrame(strings.TrimPrefix(trimmed, "from "))
	case line == trimmed && strings.HasSuffix(line, ")") && strings.Contains(line, "(") && !strings.Contains(line, ": "):
		p.call = line
	case goName(line):
		p.call = line
	default:
		if p.goLine(trimmed) {
			return
		}

		p.place(trimmed)

		if line == trimmed && !continues(line) {
			p.apart = true
		}
	}
}

// groups reports whether a line is one of the tree that Python makes of a group of errors.
func (p *parser) groups(trimmed string) bool {
	return strings.HasPrefix(trimmed, "| ") || strings.HasPrefix(trimmed, "+ ")
}

// continues reports whether a line stands within the stack of one error and those that led
// to it.
func continues(line string) bool {
	return strings.HasPrefix(line, "---") || strings.HasPrefix(line, "Next ") || strings.HasPrefix(line, "Stack trace:") ||
		strings.HasPrefix(line, "...") || strings.HasPrefix(line, "Did you mean?")
}

// add takes over a function, as take does.
func (p *parser) add(name string, own bool) bool { return p.take(frame{name: name, own: own}) }

// take takes over a frame, and reports whether it did: its name may be no text.
func (p *parser) take(f frame) bool {
	f.name = stable(f.name)
	if f.name == "" {
		return false
	}

	if p.apart {
		p.found, p.apart = p.found[:0], false
	}

	p.found = append(p.found, f)

	return true
}

// place takes over the file of a line of text that names one with a line
// number. The bare name of a file of Go is that of the line that logged, and no frame.
func (p *parser) place(s string) {
	for _, word := range strings.Fields(s[:min(len(s), 500)]) {
		word = strings.Trim(withoutColumn(word), "()[]{},;'\"")

		name, line, ok := strings.Cut(word, ":")
		if strings.HasSuffix(name, ".go") && !strings.Contains(name, "/") {
			continue
		}

		if ok && isDigit(at(line, 0)) && strings.LastIndexByte(name, '.') > strings.LastIndexByte(name, '/') && !isDigit(at(name, 0)) {
			p.inside = word
			name = stable(fileName(name))
			if name != "" {
				p.places = append(p.places, frame{name: name, own: !isForeignPlace(word)})
			}

			return
		}
	}
}

// withoutColumn writes the place of a compiler, "src/close.ts(14,9):", as others do:
// "src/close.ts:14:9".
func withoutColumn(word string) string {
	name, rest, _ := strings.Cut(word, "(")
	digits := run(rest, isDigit)
	if name == "" || digits == 0 || at(rest, digits) != ',' {
		return word
	}

	return name + ":" + rest[:digits]
}

// fileName is the last part of a path, without its line numbers.
func fileName(place string) string {
	place = place[strings.LastIndexAny(place, `/\`)+1:]
	name, _, _ := strings.Cut(place, ":")
	return name
}
