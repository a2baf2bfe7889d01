package errortext

import (
	"regexp"
	"strings"
)

var (
	atLine   = regexp.MustCompile(`^\s*at \S|^\t[\w.$/]+\([^()]*\)$`) // Tomcat leaves out the "at"
	headForm = regexp.MustCompile(
		`^(?:Unhandled [Ee]xception[.:] |Uncaught |Exception in thread ".*?" )?` + `([A-Za-z_$][\w.$]*)(?: \[\w+\])?(?::(?: (.*))?)?$`)
)

// stack reads the last stack of lines that begin with "at": above it stand the class
// and the message. What is said to have caused the error is left to the trace.
func stack(text string) Error {
	var found Error
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if atLine.MatchString(line) && (i == 0 || !atLine.MatchString(lines[i-1])) {
			if e := head(lines[:i]); e.found() {
				found = e
			}
		}
	}
	return found
}

// head is the error that the lines before a stack end with.
func head(before []string) Error {
	for i := len(before) - 1; i >= max(0, len(before)-2*maxContinued); i-- {
		if atLine.MatchString(before[i]) {
			break
		}
		if m := headForm.FindStringSubmatch(before[i]); m != nil && isClass(m[1]) {
			return Error{Class: m[1], Message: m[2] + continued(withoutCauses(before[i+1:]))}
		}
	}
	return Error{}
}
