package errortext

import (
	"regexp"
	"strings"
)

var goForm = regexp.MustCompile(`(?m)^(panic|fatal error): (.*?)(?: \[recovered.*\])?$`)

func golang(text string) Error {
	m := goForm.FindStringSubmatch(text)
	if m == nil || !strings.Contains(text, "\ngoroutine ") {
		return Error{}
	}
	return Error{Class: m[1], Message: m[2]}
}
