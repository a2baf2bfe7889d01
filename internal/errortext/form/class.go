package form

import (
	"regexp"
	"strings"
)

var classForm = regexp.MustCompile(`^\\?[A-Za-z_$][\w$]*(?:(?:[.#$\\]|::)[A-Za-z_$][\w$]*)*$`)

// IsClass reports whether a text is the name of a type as errors have it: with an
// upper-case letter at its beginning, or in a package.
func IsClass(s string) bool {
	return classForm.MatchString(s) && (strings.ContainsAny(s, `.\`) || 'A' <= s[0] && s[0] <= 'Z')
}
