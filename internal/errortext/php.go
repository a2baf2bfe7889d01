package errortext

import "regexp"

var (
	phpThrown = regexp.MustCompile(`(?s)(?:Uncaught |\n\nNext )(\\?[A-Za-z_][\w\\]*)(?:: (.*?))? in (\S+):\d+\nStack trace:`)
	phpFatal  = regexp.MustCompile(`(?m)^(?:PHP )?((?:Fatal|Parse|Compile) error): +(.*) in \S+ on line \d+$`)
)

// php reads what PHP says of an exception that nobody caught, the outermost of
// those that led to each other, or of another end.
func php(text string) Error {
	if all := phpThrown.FindAllStringSubmatch(text, -1); all != nil {
		last := all[len(all)-1]
		return Error{Class: last[1], Message: last[2]}
	}
	if m := phpFatal.FindStringSubmatch(text); m != nil {
		return Error{Class: m[1], Message: m[2]}
	}
	return Error{}
}
