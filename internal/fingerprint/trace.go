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

// reversedFrame reports whether a text begins with a frame of such a trace: "4: from a.rb:7:in
// `load'".
func reversedFrame(s string) bool {
	s = strings.TrimLeft(s, "\t ")
	digits := run(s, isDigit)
	return digits > 0 && strings.HasPrefix(s[digits:], ": from ")
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

// goFrame is a call, with its arguments or without, and on the next line its
// place.
func (p *parser) goFrame(call, place string) {
	name := call
	if strings.HasSuffix(call, ")") {
		name = call[:strings.LastIndexByte(call, '(')]
	}

	if strings.HasPrefix(name, "runtime.") || strings.HasPrefix(name, "runtime/") {
		return
	}

	p.addGo(name, place)
}

// addGo takes over a function of Go. An error that says where it was made and where it was
// wrapped has several stacks, the innermost first.
func (p *parser) addGo(name, place string) {
	p.apart = p.apart && p.panicked
	p.add(name, !foreign(place))
}

// goLine takes over a function of Go and its place on one line, as errors that
// carry a stack write them: "payments.(*Client).Capture payments/client.go:142".
func (p *parser) goLine(s string) bool {
	name, place, _ := strings.Cut(s, " ")
	is := goName(name) && (goPlace(place) || strings.Contains(name, ".(*"))
	if is {
		p.addGo(name, place)
	}

	return is
}

// goName reports whether a text is the name of a function of Go and no more.
func goName(s string) bool {
	base := s[strings.LastIndexByte(s, '/')+1:]
	_, function, ok := strings.Cut(base, ".")
	return ok && function != "" && isLetter(at(s, 0)) && !strings.HasSuffix(s, ")") &&
		run(s, func(c byte) bool { return isWord(c) || strings.IndexByte("./-()*[]", c) >= 0 }) == len(s)
}

// goPlace reports whether a text is a line of a file of Go.
func goPlace(s string) bool {
	_, line, ok := strings.Cut(s, ".go:")
	return ok && isDigit(at(line, 0))
}

// atFrame is a line of Java, JavaScript or .NET: "Type.method(File.java:12)",
// "function (/file.js:1:2)", "/file.js:1:2", "Type.Method() in C:\file.cs:line 3";
// or of Go.
func (p *parser) atFrame(s string) {
	if p.goLine(s) {
		return
	}

	place := s
	name, inside, called := strings.Cut(s, "(")
	if called {
		place = inside
	}

	if _, file, ok := strings.Cut(s, ") in "); ok {
		place = file
	}

	name = strings.TrimSpace(name)

	isFile := !called && strings.ContainsAny(name, `/\`)
	outside := isFile && !mangled(name) // a bundler leaves no names
	if isFile {
		name = file(name)
	}

	name = withoutModule(name)
	if called && mangled(place) {
		name = withoutShortNames(name)
	}

	if name == "" {
		name, isFile = file(place), true
	}

	p.take(frame{
		name: strings.TrimPrefix(readable(name), "new "), own: !foreign(place) && !library(name), isFile: isFile, outside: outside,
	})
}

func (p *parser) pythonFrame(s string) {
	place, rest, _ := strings.Cut(s, `"`)

	_, function, ok := strings.Cut(rest, ", in ")
	if !ok {
		return
	}

	p.statement = p.add(file(place)+" "+function, !foreign(place))
}

// phpFrame is "#0 /src/File.php(12): Class->method(…)". The place is the one that
// called: the method itself is at the place of the line before.
func (p *parser) phpFrame(s string) {
	_, rest, _ := strings.Cut(s, " ")

	place, call, _ := strings.Cut(rest, ": ")
	inside := p.inside
	if inside == "" {
		inside = place
	}

	p.inside = place
	name, _, _ := strings.Cut(call, "(")
	p.add(name, !foreign(inside) && strings.Contains(inside, "/"))
}

// rubyFrame is "/lib/file.rb:12:in `method'", or with 'Class#method'. The line with the
// error begins its stack, or ends it before Ruby 3.0.
func (p *parser) rubyFrame(s string) {
	reversed := reversedFrame(s)
	place, call, _ := strings.Cut(s, ":in ")
	name, said, _ := strings.Cut(strings.TrimLeft(call, "`'\""), "'")
	f := frame{name: file(place) + " " + withoutRubyClass(strings.TrimRight(name, "\"")), own: !foreign(place)}

	switch {
	case reversed:
		p.callers = append(p.callers, f)
	case !strings.HasPrefix(said, ": "):
		p.take(f)
	case !p.ended:
		p.apart = true
		p.take(f)

		for _, caller := range slices.Backward(p.callers) {
			p.take(caller)
		}

		p.ended = len(p.callers) > 0
	}
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
			if name = stable(file(name)); name != "" {
				p.places = append(p.places, frame{name: name, own: !foreign(word)})
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

// file is the last part of a path, without its line numbers.
func file(place string) string {
	place = place[strings.LastIndexAny(place, `/\`)+1:]
	name, _, _ := strings.Cut(place, ":")
	return name
}

// foreign reports whether a place is in a library or in the language itself.
func foreign(place string) bool {
	return slices.ContainsFunc([]string{
		"/pkg/mod/", "@v", "/vendor/", "/go/src/", "/src/runtime/", "redrive/internal/engine/", // Go
		"site-packages", "dist-packages", "/lib/python", "<frozen", // Python
		"node_modules", "node:", "(internal/", "<anonymous>", // JavaScript
		"/gems/", "/lib/ruby/", "<internal:", ") lib/", ") app/", // Ruby, and how Rails names a gem: "rack (3.0.8) lib/rack.rb"
		"Native Method", "[internal function", "phar://", "/usr/share/php/", // Java, PHP
		"/rustc/", "cargo/registry/", "cargo/git/checkouts/", "/library/std/src/", "/library/core/src/", // Rust
	}, func(mark string) bool { return strings.Contains(place, mark) })
}

// library reports whether a Java or .NET name belongs to the platform or to a
// framework that is on every stack.
func library(name string) bool {
	return slices.ContainsFunc([]string{
		"java.", "javax.", "jakarta.", "jdk.", "sun.", "com.sun.", "kotlin.", "kotlinx.", "scala.", "groovy.", "clojure.", "akka.",
		"org.springframework.", "org.apache.", "org.hibernate.", "org.postgresql.", "org.mariadb.", "org.h2.", "org.jooq.", "org.flywaydb.",
		"org.quartz.", "org.jobrunr.", "org.eclipse.", "org.jboss.", "org.wildfly.", "org.slf4j.", "org.gradle.", "org.codehaus.", "org.junit.",
		"ch.qos.", "com.zaxxer.", "com.mysql.", "com.fasterxml.", "com.google.", "com.mongodb.", "com.rabbitmq.", "com.amazonaws.",
		"software.amazon.", "oracle.", "io.netty.", "io.lettuce.", "io.grpc.", "io.micrometer.", "io.quarkus.", "io.micronaut.", "io.vertx.",
		"io.ktor.", "reactor.", "okhttp3.", "okio.", "retrofit2.", "feign.", "redis.clients.", "liquibase.",
		"System.", "Microsoft.", "Npgsql.", "MySqlConnector.", "MySql.", "Oracle.", "MongoDB.", "StackExchange.", "RabbitMQ.", "Confluent.",
		"Azure.", "Amazon.", "Google.", "Grpc.", "Newtonsoft.", "Dapper.", "Polly.", "Hangfire.", "Quartz.", "MassTransit.", "NServiceBus.",
		"MediatR.", "AutoMapper.", "FluentValidation.", "Serilog.", "NLog.", "Castle.",
	}, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}
