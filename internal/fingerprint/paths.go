package fingerprint

import (
	"strings"
)

// pathLength is a path in a file system or of a URL, or one of Windows.
func pathLength(s string, from int) int {
	rest := s[from:]
	before := at(s, from-1)
	switch {
	case before == '<' || before == '/' || before == '.':
		return 0
	case len(rest) > 1 && rest[0] == '/' && (isWord(rest[1]) || rest[1] == '.'):
	case strings.HasPrefix(rest, "./"), strings.HasPrefix(rest, "../"), strings.HasPrefix(rest, "~/"), strings.HasPrefix(rest, `\\`):
	case len(rest) > 2 && isLetter(rest[0]) && rest[1] == ':' && rest[2] == '\\':
		return 2 + pathEnd(rest[2:])
	default:
		return relativeLength(rest)
	}

	n := pathEnd(rest)
	if at(rest, n) == '=' && strings.Contains(rest[:n], "?") {
		n += run(rest[n:], func(c byte) bool { return isWord(c) || strings.IndexByte("=&%+-._~/", c) >= 0 })
	}

	return n
}

func pathEnd(s string) int {
	n := run(s, func(c byte) bool { return c > ' ' && c != 0x7f && !strings.ContainsRune("\"'`,;:()[]{}<>|=", rune(c)) })
	return len(strings.TrimRight(s[:n], ".!?"))
}

// relativeLength is a path with folders whose file has an extension: exports/a.csv.
func relativeLength(s string) int {
	n := pathEnd(s)
	folders, dot := strings.LastIndexByte(s[:n], '/'), strings.LastIndexByte(s[:n], '.')
	if folders <= 0 || dot < folders || !isExtension(s[dot+1:n]) {
		return 0
	}

	return n
}

func isExtension(s string) bool {
	const longest = 5
	small := func(c byte) bool { return 'a' <= c && c <= 'z' }
	return s != "" && len(s) <= longest && small(s[0]) && run(s, func(c byte) bool { return small(c) || isDigit(c) }) == len(s)
}
