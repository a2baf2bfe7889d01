package errortext

import "regexp"

var rustForm = regexp.MustCompile(`(?m)^thread '.*?' (?:\(\d+\) )?panicked at \S+:\d+:\d+:\n(.*)$`)

func rust(text string) Error {
	if m := rustForm.FindStringSubmatch(text); m != nil {
		return Error{Class: "panic", Message: m[1]}
	}
	return Error{}
}
