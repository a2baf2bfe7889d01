package fingerprint

import (
	"net/netip"
	"slices"
	"strings"
)

// A matcher reports how long the value is that begins at a place of a message,
// 0 when there is none. The place is not within a word.
type matcher struct {
	as    string
	match func(s string, from int) int
}

// matchers are asked in this order. The array never changes.
var matchers = [...]matcher{
	{url, urlLength}, {email, emailLength}, {uuid, uuidLength}, {moment, timeLength}, {moment, calendarLength}, {moment, slashedLength},
	{ip, ipLength}, {host, hostLength}, {path, pathLength}, {hexa, hexLength}, {duration, durationLength}, {size, sizeLength},
	{number, phoneLength}, {number, numberLength},
}

// maxQuoted is how long a quoted value may be; a quote that is not closed by
// then is a mark of something else.
const maxQuoted = 300

// quoted is a value in quotes, but not the name of a JSON field, nor an
// apostrophe.
func quoted(s string, from int) int {
	quote := s[from]
	if quote != '"' && quote != '\'' && quote != '`' {
		return 0
	}

	for i := from + 1; i < len(s) && i <= from+maxQuoted && s[i] != '\n'; i++ {
		if s[i] == '\\' {
			i++
			continue
		}

		if s[i] != quote && !(quote == '`' && s[i] == '\'') || isWord(at(s, i+1)) { // Ruby: `name'
			continue
		}

		if quote == '"' && at(s, i+1) == ':' && inObject(s[:from]) {
			return 0
		}

		return i + 1 - from
	}

	return 0
}

// inObject reports whether a field of a JSON object can follow.
func inObject(before string) bool {
	before = strings.TrimRight(before[max(0, len(before)-16):], " \n\t")
	return strings.HasSuffix(before, "{") || strings.HasSuffix(before, ",")
}

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

func uuidLength(s string, from int) int {
	const length = 36
	if len(s) < from+length || isWord(at(s, from+length)) {
		return 0
	}

	for i := range length {
		c := s[from+i]
		if dash := i == 8 || i == 13 || i == 18 || i == 23; dash && c != '-' || !dash && !isHex(c) {
			return 0
		}
	}

	return length
}

// hexLength is a number that says that it is hexadecimal, or a long one that
// has letters and digits.
func hexLength(s string, from int) int {
	if s[from] == '0' && (at(s, from+1) == 'x' || at(s, from+1) == 'X') {
		if n := run(s[from+2:], isHex); n > 0 && !isWord(at(s, from+2+n)) {
			return n + 2
		}
		return 0
	}

	const shortest = 8

	n := run(s[from:], isHex)
	value := s[from : from+n]
	if n < shortest || isWord(at(s, from+n)) || !strings.ContainsAny(value, "0123456789") || run(value, isDigit) == n {
		return 0
	}

	return n
}

// ipLength is an address with its port or its prefix length.
func ipLength(s string, from int) int {
	if s[from] == '[' {
		return bracketedIPLength(s[from:])
	}

	n := run(s[from:], func(c byte) bool { return isHex(c) || c == ':' || c == '.' })
	value := strings.TrimRight(s[from:from+n], ".:")
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
	const longest = len("[") + 45

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

	if certain := word == "lookup" || word == "enotfound" || word == "eai_again"; port == 0 && !certain && !strings.Contains(name, ".") {
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
	if query := at(rest, n); query == '=' && strings.Contains(rest[:n], "?") {
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

// phoneLength is a telephone number with its country: +1 (555) 010-9999.
func phoneLength(s string, from int) int {
	const fewest = 8

	if s[from] != '+' || !isDigit(at(s, from+1)) {
		return 0
	}

	n := 1 + run(s[from+1:], func(c byte) bool { return isDigit(c) || strings.IndexByte(" ()-/", c) >= 0 })
	number := strings.TrimRight(s[from:from+n], " ()-/")
	if digits := strings.IndexFunc(number, func(r rune) bool { return r != '+' && !isDigit(byte(r)) }); digits < 0 ||
		len(number)-strings.Count(number, " ") < fewest || isWord(at(s, from+len(number))) {
		return 0
	}

	return len(number)
}

// numberLength is a number with its sign, its points and its exponent.
func numberLength(s string, from int) int {
	i := from
	if c := s[i]; (c == '-' || c == '+') && at(s, from-1) != '-' {
		i++
	}

	if !isDigit(at(s, i)) {
		return 0
	}

	for i < len(s) && (isDigit(s[i]) || strings.ContainsRune(".,", rune(s[i])) && isDigit(at(s, i+1))) {
		i++
	}

	if c := at(s, i); c == 'e' || c == 'E' {
		sign := 0
		if d := at(s, i+1); d == '-' || d == '+' {
			sign = 1
		}

		if n := run(s[min(len(s), i+1+sign):], isDigit); n > 0 && !isWord(at(s, i+1+sign+n)) {
			i += 1 + sign + n
		}
	}

	if isWord(at(s, i)) {
		return 0
	}

	return i - from
}

// codes are the words before the number of an error: that is the cause, not a value.
var codes = [...]string{"exit status", "exit code", "errno"}

// codeLength is a status of HTTP, a state of SQL or the number of an error.
func codeLength(s string, from int) int {
	if isStatus(s, from) {
		return len("503")
	}

	if n := sqlStateLength(s, from); n > 0 {
		return n
	}

	const longest = 5
	n := run(s[from:], isDigit)
	if n == 0 || n > longest || isWord(at(s, from+n)) {
		return 0
	}

	if ofPDO(s[:from]) {
		return n
	}

	before := strings.ToLower(strings.TrimRight(s[max(0, from-16):from], " :=[("))
	for _, word := range codes {
		if strings.HasSuffix(before, word) {
			return n
		}
	}

	return 0
}

// ofPDO reports whether a text ends as PDO does before the number of an error: with the
// state, and what it calls such states.
func ofPDO(before string) bool {
	const longest = 80
	before, colon := strings.CutSuffix(before, ": ")
	i := strings.LastIndex(before, "SQLSTATE[")
	return colon && i >= 0 && len(before)-i < longest && strings.Count(before[i:], ": ") == 1
}

// sqlStates are the spellings of the name before a state of SQL, in small letters.
var sqlStates = [...]string{"sqlstate", "sql state", "sql_state"}

// sqlStateLength is a state of SQL after its name, with the quotes around it if there
// are any: five upper-case letters and digits, for example HY000.
func sqlStateLength(s string, from int) int {
	const length = 5

	begin, end := from, byte(0)
	if s[from] == '"' || s[from] == '\'' {
		begin, end = from+1, s[from]
	}

	n := run(s[begin:], func(c byte) bool { return isDigit(c) || 'A' <= c && c <= 'Z' })
	after := at(s, begin+n)
	if n != length || !strings.ContainsAny(s[begin:begin+n], "0123456789") || end != 0 && after != end || isWord(after) {
		return 0
	}

	before := strings.ToLower(strings.TrimRight(s[max(0, from-16):from], ` :=[("'`))
	for _, name := range sqlStates {
		if strings.HasSuffix(before, name) {
			return n + 2*(begin-from)
		}
	}

	return 0
}

// isStatus reports whether a number is the status of an HTTP answer that
// failed: it is named so, or followed by its words.
func isStatus(s string, from int) bool {
	if n := run(s[from:], isDigit); n != 3 || s[from] != '4' && s[from] != '5' || isWord(at(s, from+3)) {
		return false
	}

	if at(s, from+3) == ' ' && 'A' <= at(s, from+4) && at(s, from+4) <= 'Z' && isLetter(at(s, from+5)) {
		return true
	}

	before := strings.ToLower(strings.TrimRight(s[max(0, from-12):from], " :="))

	return strings.HasSuffix(before, "status") || strings.HasSuffix(before, "code") || strings.HasSuffix(before, "http") ||
		strings.HasSuffix(before, "ed error") // "returned error: 503" of curl
}

// timeLength is a date, a time of day or both, with a zone.
func timeLength(s string, from int) int {
	end := from
	if n := dateLength(s, from); n > 0 {
		end += n
		if c := at(s, end); c == 'T' || c == ' ' || c == 't' {
			if n := clockLength(s, end+1); n > 0 {
				end += 1 + n
			}
		}
	} else if end += clockLength(s, from); end == from {
		return 0
	}

	if isWord(at(s, end)) {
		return 0
	}

	return end - from
}

// dateLength is a date that begins with its year.
func dateLength(s string, from int) int {
	const length = len("2006-01-02")
	if len(s) < from+length {
		return 0
	}

	date := s[from : from+length]
	separator := date[4]
	if separator != '-' && separator != '/' && separator != '.' || date[7] != separator || isDigit(at(s, from+length)) {
		return 0
	}

	for _, i := range [...]int{0, 1, 2, 3, 5, 6, 8, 9} {
		if !isDigit(date[i]) {
			return 0
		}
	}

	return length
}

// clockLength is a time of day with seconds, their fraction and a zone.
func clockLength(s string, from int) int {
	i := from
	for part := range 3 {
		if part > 0 {
			if at(s, i) != ':' {
				return 0
			}

			i++
		}

		n := run(s[min(len(s), i):min(len(s), i+3)], isDigit)
		if n == 0 || n > 2 || part > 0 && n != 2 {
			return 0
		}

		i += n
	}

	if c := at(s, i); (c == '.' || c == ',') && isDigit(at(s, i+1)) {
		i += 1 + run(s[i+1:], isDigit)
	}

	if at(s, i) == ':' { // an address
		return 0
	}

	return i - from + zoneLength(s, i)
}

// zoneLength is "Z", an offset, or what Go writes: " +0000 UTC".
func zoneLength(s string, from int) int {
	i := from
	if at(s, i) == 'Z' || at(s, i) == 'z' {
		return 1
	}

	if at(s, i) == ' ' && (at(s, i+1) == '+' || at(s, i+1) == '-') && run(s[i+2:], isDigit) == 4 {
		i++
	}

	if c := at(s, i); c == '+' || c == '-' {
		i += offsetLength(s[i:])
	}

	for _, name := range [...]string{" UTC", " GMT"} {
		if strings.HasPrefix(s[i:], name) && !isWord(at(s, i+len(name))) {
			return i + len(name) - from
		}
	}

	return i - from
}

// offsetLength is "+0200" or "+02:00".
func offsetLength(s string) int {
	i := 1
	for range 2 {
		if !isDigit(at(s, i)) || !isDigit(at(s, i+1)) {
			return 0
		}

		if i += 2; i == 3 && at(s, i) == ':' {
			i++
		}
	}

	return i
}

// durationLength is a duration as programs and people write it: 1m2.5s, 30s, 12 ms,
// 5 minutes.
func durationLength(s string, from int) int {
	i := from
	for i < len(s) && isDigit(s[i]) {
		n := run(s[i:], func(c byte) bool { return isDigit(c) || c == '.' })
		unit := unitLength(s[i+n:])
		if unit == 0 {
			unit = unitWord(s[i+n:], timeWords[:])
		}

		if unit == 0 {
			return 0
		}

		i += n + unit
	}

	if i == from || isWord(at(s, i)) {
		return 0
	}

	return i - from
}

func unitLength(s string) int {
	for _, unit := range [...]string{"ns", "us", "µs", "μs", "ms", "s", "min", "m", "h", "d"} {
		if strings.HasPrefix(s, unit) && !isLetter(at(s, len(unit))) {
			return len(unit)
		}
	}

	return 0
}

var (
	timeWords = [...]string{
		"ms", "s", "milliseconds", "millisecond", "seconds", "second", "secs", "sec", "minutes", "minute", "mins", "min",
		"hours", "hour", "hrs", "days", "day", "weeks", "week",
	}
	sizeWords = [...]string{"bytes", "byte", "kB", "KB", "MB", "GB", "TB", "KiB", "MiB", "GiB", "TiB", "Ki", "Mi", "Gi"}
)

// unitWord is one of the units, after one space or none.
func unitWord(s string, units []string) int {
	space := 0
	if at(s, 0) == ' ' {
		space = 1
	}

	n := run(s[space:], isLetter)
	if slices.Contains(units, s[space:space+n]) {
		return space + n
	}

	return 0
}

// sizeLength is a number of bytes with its unit: programs choose the unit by the size.
func sizeLength(s string, from int) int {
	n := run(s[from:], func(c byte) bool { return isDigit(c) || c == '.' || c == ',' })
	if n == 0 || !isDigit(s[from]) {
		return 0
	}

	unit := unitWord(s[from+n:], sizeWords[:])
	if unit == 0 || isWord(at(s, from+n+unit)) {
		return 0
	}

	return n + unit
}
