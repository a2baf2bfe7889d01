package source

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// ShownName writes a name so that it is one line of text: most names as they are, and one
// that is not text as Go would quote it.
func ShownName(name string) string {
	odd := func(r rune) bool { return r == utf8.RuneError || unicode.IsControl(r) }
	if strings.HasPrefix(name, `"`) || !utf8.ValidString(name) || strings.ContainsFunc(name, odd) {
		return strconv.QuoteToASCII(name)
	}

	return name
}
