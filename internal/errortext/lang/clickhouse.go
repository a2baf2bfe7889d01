package lang

import (
	"redrive/internal/errortext/form"
	"regexp"
	"strings"
)

// clickhouseForm matches an error of a ClickHouse server: its class and its message. The client may
// add between the two from which server it received the error.
var clickhouseForm = regexp.MustCompile(`(?m)^(?:Error on processing query: )?Code: \d+\. ` +
	`(DB::\w+): (?:Received from \S+\. DB::\w+: )?(.+)$`)

// clickhouseTrace ends a message that is followed by a stack.
const clickhouseTrace = ", Stack trace (when copying this message, always include the lines below):"

// clickhouse reads the last error of a ClickHouse server.
func clickhouse(text string) form.Error {
	if !strings.Contains(text, ". DB::") {
		return form.Error{}
	}

	all := clickhouseForm.FindAllStringSubmatch(text, -1)
	if all == nil {
		return form.Error{}
	}

	last := all[len(all)-1]
	message, _, _ := strings.Cut(last[2], " (version ")

	return form.Error{Class: last[1], Message: strings.TrimSuffix(message, clickhouseTrace)}
}
