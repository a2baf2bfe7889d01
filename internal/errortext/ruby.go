package errortext

import "regexp"

var rubyForm = regexp.MustCompile("(?m)^\\S.*?:\\d+:in [`'\"].*?['\"]: (.*) \\(([A-Z]\\w*(?:::\\w+)*)\\)$")

func ruby(text string) Error {
	if m := rubyForm.FindStringSubmatch(text); m != nil {
		return Error{Class: m[2], Message: m[1]}
	}
	return Error{}
}
