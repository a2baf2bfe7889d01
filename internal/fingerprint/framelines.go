package fingerprint

import (
	"slices"
	"strconv"
	"strings"
)

// reversedFrame reports whether a text begins with a frame of such a trace: "4: from a.rb:7:in
// `load'".
func reversedFrame(s string) bool {
	s = strings.TrimLeft(s, "\t ")
	digits := run(s, isDigit)
	return digits > 0 && strings.HasPrefix(s[digits:], ": from ")
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
	p.add(name, !isForeignPlace(place))
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

	// "Type.method(File.java:12)" has its place in parentheses, and without a name the whole is
	// the place.
	name, inside, called := strings.Cut(s, "(")
	if called {
		place = inside
	}

	// .NET: "Type.Method() in C:\file.cs:line 3"
	if _, file, ok := strings.Cut(s, ") in "); ok {
		place = file
	}

	name = strings.TrimSpace(name)

	isFile := !called && strings.ContainsAny(name, `/\`)
	outside := isFile && !mangled(name) // a bundler leaves no names
	if isFile {
		name = fileName(name)
	}

	name = withoutModule(name)
	if called && mangled(place) {
		name = withoutShortNames(name)
	}

	// Names that a bundler made are taken away: the file is what is left.
	if name == "" {
		name, isFile = fileName(place), true
	}

	p.take(frame{
		name:    strings.TrimPrefix(withoutCompilerNames(name), "new "),
		own:     !isForeignPlace(place) && !isLibraryName(name),
		isFile:  isFile,
		outside: outside,
	})
}

func (p *parser) pythonFrame(s string) {
	place, rest, _ := strings.Cut(s, `"`)

	_, function, ok := strings.Cut(rest, ", in ")
	if !ok {
		return
	}

	p.statement = p.add(fileName(place)+" "+function, !isForeignPlace(place))
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
	p.add(name, !isForeignPlace(inside) && strings.Contains(inside, "/"))
}

// rubyFrame is "/lib/file.rb:12:in `method'", or with 'Class#method'. The line with the
// error begins its stack, or ends it before Ruby 3.0.
func (p *parser) rubyFrame(s string) {
	reversed := reversedFrame(s)
	place, call, _ := strings.Cut(s, ":in ")
	name, said, _ := strings.Cut(strings.TrimLeft(call, "`'\""), "'")
	f := frame{name: fileName(place) + " " + withoutRubyClass(strings.TrimRight(name, "\"")), own: !isForeignPlace(place)}

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

// rustName takes over the line of a backtrace of Rust that has a number and a function; its
// place is on the next line.
func (p *parser) rustName(line string) bool {
	trimmed := strings.TrimLeft(line, " ")
	digits := run(trimmed, isDigit)

	name, ok := strings.CutPrefix(trimmed[digits:], ": ")
	isName := strings.HasPrefix(name, "<") || strings.Contains(name, "::<impl ") || !strings.Contains(name, " ")
	if digits == 0 || !ok || len(trimmed) == len(line) || !isName {
		p.rust = ""
		return false
	}

	p.rust = name

	return true
}

// rustFrame is a function of Rust and its place: "./src/main.rs:12:5".
func (p *parser) rustFrame(place string) {
	name := p.rust
	p.rust = ""

	if strings.HasPrefix(name, "std::") || strings.HasPrefix(name, "core::") || strings.HasPrefix(name, "rust_") {
		return
	}

	p.add(withoutHash(name), !isForeignPlace(place))
}

// elixirFrame takes over a line of a stack of Elixir: "(shop 0.1.0) lib/shop/lead.ex:12:
// Shop.Lead.perform/1". The release of an application is left out.
func (p *parser) elixirFrame(s string) bool {
	place, function, ok := strings.Cut(s, ": ")
	if !ok || !strings.Contains(place, ".ex:") && !strings.Contains(place, ".exs:") && !strings.Contains(place, ".erl:") ||
		!strings.ContainsAny(function, "/(") || strings.Contains(function, " in ") && !strings.Contains(function, "anonymous fn") {
		return false
	}

	// An error about arguments prints them: "Shop.Price.parse(12.5)".
	name, arguments, called := strings.Cut(function, "(")
	if called && name != "" && strings.HasSuffix(arguments, ")") && !strings.Contains(function, " in ") {
		function = name + "/" + arity(strings.TrimSuffix(arguments, ")"))
	}

	application := ""
	if rest, found := strings.CutPrefix(place, "("); found {
		application, _, _ = strings.Cut(rest, " ")
		application = strings.TrimSuffix(application, ")")
	}

	_, library := slices.BinarySearch(runtimes, application)
	p.add(function, !library && !strings.Contains(place, "/deps/"))

	return true
}

// arity is the number of arguments in a printed list of them.
func arity(arguments string) string {
	if strings.TrimSpace(arguments) == "" {
		return "0"
	}

	count, depth := 1, 0
	quoted := false
	for i := range len(arguments) {
		switch c := arguments[i]; {
		case c == '"' && at(arguments, i-1) != '\\':
			quoted = !quoted
		case quoted:
		case strings.IndexByte("([{<", c) >= 0:
			depth++
		case strings.IndexByte(")]}>", c) >= 0:
			depth--
		case c == ',' && depth == 0:
			count++
		}
	}

	return strconv.Itoa(count)
}
