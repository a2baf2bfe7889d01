package errortext

import "regexp"

var elixirForm = regexp.MustCompile(`(?m)^\s*\*\* \(([A-Za-z][\w.]*)\) (.*)$`)

func elixir(text string) Error {
	if m := elixirForm.FindStringSubmatch(text); m != nil {
		return Error{Class: m[1], Message: m[2]}
	}
	return Error{}
}
