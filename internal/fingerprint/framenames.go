package fingerprint

import (
	"slices"
	"strings"
)

// What compilers and runtimes make of the names of functions, and what is left of them here:
// what the programmer wrote.

// withoutHash is a name of Rust without the mark of its build, and without the closures
// within the function.
func withoutHash(name string) string {
	const digits = 16
	i := strings.LastIndex(name, "::h")
	if i >= 0 && len(name)-i == len("::h")+digits && run(name[i+len("::h"):], isHex) == digits {
		name = name[:i]
	}

	return strings.ReplaceAll(name, "::{{closure}}", "")
}

// runtimes are the applications of Elixir and Erlang that are on many stacks and never are
// the program itself, sorted.
var runtimes = strings.Fields(`absinthe bandit broadway commanded cowboy crypto db_connection ecto ecto_sql eex elixir exq finch gen_stage
	hackney httpoison inets jason kernel logger mint mix myxql oban phoenix phoenix_live_view plug plug_cowboy postgrex quantum ranch
	redix req ssl stdlib swoosh tesla thousand_island verk`)

// withoutRubyClass is the name of a method of Ruby as versions before 3.4 write it: the
// class before the method is left out of "block in Shop::Feed#sum".
func withoutRubyClass(name string) string {
	word := name[strings.LastIndexByte(name, ' ')+1:]
	class := run(word, func(c byte) bool { return isWord(c) || c == ':' })
	if class == 0 || word[0] < 'A' || word[0] > 'Z' || class >= len(word)-1 || strings.IndexByte("#.", word[class]) < 0 {
		return name
	}

	return name[:len(name)-len(word)] + word[class+1:]
}

// withoutModule is a name of Java without the module before it. What stands behind the
// slash of a lambda is where the runtime put it.
func withoutModule(name string) string {
	i := strings.LastIndexByte(name, '/')
	if i < 0 || strings.HasPrefix(name, "/") {
		return name
	}

	if address, method, ok := strings.Cut(name[i+1:], "."); ok && (strings.HasPrefix(address, "0x") || run(address, isDigit) == len(address)) {
		return name[:i] + "." + method
	}

	return name[i+1:]
}

// withoutCompilerNames is the name that a programmer gave a function of .NET: its compiler puts it into
// angle brackets and adds classes of its own, "Shop.Mailer.<RunAsync>d__5.MoveNext".
func withoutCompilerNames(name string) string {
	before, generated, ok := strings.Cut(name, "<")
	if !ok || strings.HasPrefix(generated, "init>") || strings.HasPrefix(generated, "clinit>") || strings.HasPrefix(generated, "anonymous>") {
		return name
	}

	for generated != "" {
		generated = strings.TrimLeft(generated, "<")

		inside, rest, closed := strings.Cut(generated, ">")
		if closed && inside != "" && run(inside, isWord) == len(inside) && strings.ContainsAny(rest, "_.$") {
			return before + inside
		}

		_, generated, ok = strings.Cut(rest, "<")
		if !ok {
			break
		}
	}

	return name
}

// mangled reports whether a place is in a file that a bundler made: its name has a mark of
// its content, or it stands in a folder of built files.
func mangled(place string) bool {
	name := fileName(place)
	return withoutMark(name) != name || strings.Contains(place, "/dist/") || strings.Contains(name, ".min.")
}

// withoutShortNames is a name of JavaScript without the parts that a bundler chose.
func withoutShortNames(name string) string {
	const shortest = 3
	parts := slices.DeleteFunc(strings.Split(name, "."), func(part string) bool { return len(part) < shortest })
	return strings.Join(parts, ".")
}

// withoutMark is the name of a file without what a bundler put into it to tell its content:
// "chunk-BfXk29aQ.js", "server.4f3a2b1c.js".
func withoutMark(name string) string {
	const shortest = 6

	base, extension, _ := cutLast(name, '.')
	if !slices.Contains([]string{"js", "mjs", "cjs", "jsx", "ts", "tsx"}, extension) {
		return name
	}

	i := strings.LastIndexAny(base, "-.")
	mark := base[i+1:]
	if i <= 0 || len(mark) < shortest || !isMark(mark) {
		return name
	}

	return base[:i] + "." + extension
}

// isMark reports whether letters were made by chance: digits, or capitals among small
// letters, as no word has them.
func isMark(s string) bool {
	if run(s, func(c byte) bool { return isWord(c) && c < 0x80 }) != len(s) {
		return false
	}

	capitals, small := false, false
	for i := range len(s) {
		capitals = capitals || i > 0 && 'A' <= s[i] && s[i] <= 'Z'
		small = small || 'a' <= s[i] && s[i] <= 'z'
	}

	return strings.ContainsAny(s, "0123456789") || capitals && small
}

func cutLast(s string, mark byte) (before, after string, ok bool) {
	i := strings.LastIndexByte(s, mark)
	if i < 0 {
		return s, "", false
	}

	return s[:i], s[i+1:], true
}

// stable is the name of a function without what changes from build to build and
// from process to process: numbers of closures and proxies, and addresses.
func stable(name string) string {
	name = clip(strings.TrimSpace(name), maxFrame)
	if strings.IndexFunc(name, func(r rune) bool { return r < ' ' }) >= 0 {
		return ""
	}

	out := make([]byte, 0, len(name))
	i := 0
	for i < len(name) {
		c := name[i]

		// $1, .0 and @7f3a are numbers and addresses.
		if c == '$' || c == '.' || c == '@' {
			if n := run(name[i+1:], isHex); n > 0 && !isWord(at(name, i+1+n)) && strings.ContainsAny(name[i+1:i+1+n], "0123456789") {
				i += 1 + n
				continue
			}
		}

		if strings.HasPrefix(name[i:], ".func") && isDigit(at(name, i+len(".func"))) { // a closure of Go
			i += len(".func") + run(name[i+len(".func"):], isDigit)
			continue
		}

		out = append(out, c)
		i++
	}

	return withoutMark(string(out))
}
