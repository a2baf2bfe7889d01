package fingerprint

import (
	"net/netip"
	"slices"
	"strings"
)

// urlLength goes by the scheme. What ends a sentence is not part of the URL.
func urlLength(s string, from int) int {
	scheme := run(s[from:min(len(s), from+16)], func(c byte) bool { return isLetter(c) || isDigit(c) || c == '+' })
	if scheme < 2 || !isLetter(s[from]) || !strings.HasPrefix(s[from+scheme:], "://") {
		return 0
	}

	length := run(s[from:], func(c byte) bool { return c > ' ' && c < 0x7f && !strings.ContainsRune("\"'`<>|", rune(c)) })

	link := strings.TrimRight(s[from:from+length], ".,:;!?")
	for strings.HasSuffix(link, ")") && !strings.Contains(link, "(") || strings.HasSuffix(link, "]") && !strings.Contains(link, "[") ||
		strings.HasSuffix(link, "}") && !strings.Contains(link, "{") {
		link = strings.TrimRight(link[:len(link)-1], ".,:;!?")
	}

	return max(len(link), scheme+3)
}

func emailLength(s string, from int) int {
	const maxLocal = 64

	local := run(s[from:min(len(s), from+maxLocal)], func(c byte) bool { return isWord(c) || strings.ContainsRune(".%+-", rune(c)) })
	if local == 0 || at(s, from+local) != '@' {
		return 0
	}

	host := s[from+local+1:]
	host = strings.TrimRight(host[:run(host, func(c byte) bool { return isWord(c) || c == '.' || c == '-' })], ".-")
	if !strings.Contains(host, ".") {
		return 0
	}

	return local + 1 + len(host)
}

// ipLength is an address with its port or its prefix length.
func ipLength(s string, from int) int {
	if s[from] == '[' {
		return bracketedIPLength(s[from:])
	}

	n := run(s[from:], func(c byte) bool { return isHex(c) || c == ':' || c == '.' })
	value := strings.TrimRight(s[from:from+n], ".:")

	// The last colons of a sentence are none of it, but those of 2001:db8:: are. A name goes on
	// behind its colons: ab12::<T>.
	if rest := s[from+len(value):]; value != "" && !strings.Contains(value, ".") && strings.HasPrefix(rest, "::") &&
		!strings.ContainsRune("<(", rune(at(rest, len("::")))) {
		value += "::"
	}

	// Two colons alone stand in names, Net::ReadTimeout, and are not an address.
	if strings.HasPrefix(s[from:from+n], "::") && value == "" || isWord(at(s, from+n)) {
		return 0
	}

	if strings.Count(value, ".") == 3 {
		return ip4Length(s, from, value)
	}

	if strings.Count(value, ":") < 2 || !strings.ContainsAny(value, "0123456789") {
		return 0
	}

	if _, err := netip.ParseAddr(value); err != nil {
		return 0
	}

	return len(value) + tail(s, from+len(value), '/')
}

// bracketedIPLength is an address with a port: [::1]:443.
func bracketedIPLength(s string) int {
	const longest = len("[]") + 45

	end := strings.IndexByte(s[:min(len(s), longest)], ']')
	if end < 0 || at(s, end+1) != ':' {
		return 0
	}

	if _, err := netip.ParseAddr(s[1:end]); err != nil {
		return 0
	}

	return end + 1 + tail(s, end+1, ':')
}

// hosts are the words before the name of a host, in small letters, sorted.
var hosts = strings.Fields(`dial eai_again econnrefused econnreset ehostunreach enotfound etimedout getaddrinfo host hostname
	lookup resolve tcp`)

// hostLength is the name of a host, with its port, where the words before it say
// that one follows, or its address follows. Other names with dots are those of classes and
// files.
func hostLength(s string, from int) int {
	if !isLetter(s[from]) && !isDigit(s[from]) {
		return 0
	}

	n := run(s[from:], func(c byte) bool { return c < 0x80 && isWord(c) || c == '.' || c == '-' })
	name := strings.TrimRight(s[from:from+n], ".-")

	port := tail(s, from+len(name), ':')
	isNamed := strings.ContainsAny(name, "-.0123456789") // no word of a sentence is
	if port > 0 && isDialled(s, from) || isNamed && isResolved(s, from+n) {
		return len(name) + port
	}

	word := strings.ToLower(lastWord(s[max(0, from-24):from]))
	if _, found := slices.BinarySearch(hosts, word); !found && !(word == "to" && connects(s[:from])) {
		return 0
	}

	certain := word == "lookup" || word == "enotfound" || word == "eai_again"
	if port == 0 && !certain && !strings.Contains(name, ".") {
		return 0
	}

	return len(name) + port
}

// isDialled reports whether a connection is told of before the name and the port of a host:
// "Could not connect to Redis at cache:6379", "Connection refused (prices:8080)".
func isDialled(s string, from int) bool {
	const farthest = 48
	before := strings.ToLower(s[max(0, from-farthest):from])
	leads := strings.HasSuffix(before, " at ") || strings.HasSuffix(before, " to ") || strings.HasSuffix(before, "(")
	return leads && strings.Contains(before, "connect")
}

// isResolved reports whether the address of a host follows its name: "by runner-2 (10.1.3.9)".
func isResolved(s string, to int) bool {
	address := to + len(" (")
	if !strings.HasPrefix(s[to:], " (") || !isDigit(at(s, address)) {
		return false
	}

	length := ipLength(s, address)

	return length > 0 && at(s, address+length) == ')'
}

// connects reports whether a text ends with "connect to", or another form of it.
func connects(s string) bool {
	before := strings.ToLower(lastWord(strings.TrimSuffix(s, "to ")))
	return before == "connect" || before == "connecting" || before == "connection"
}

func ip4Length(s string, from int, value string) int {
	if _, err := netip.ParseAddrPort(value); err == nil {
		return len(value)
	}

	if _, err := netip.ParseAddr(value); err != nil {
		return 0
	}

	return len(value) + tail(s, from+len(value), '/')
}

// tail is the length of a mark and the digits after it.
func tail(s string, from int, mark byte) int {
	if at(s, from) != mark {
		return 0
	}

	if n := run(s[from+1:], isDigit); n > 0 && !isWord(at(s, from+1+n)) {
		return n + 1
	}

	return 0
}
