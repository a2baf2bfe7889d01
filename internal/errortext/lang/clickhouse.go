package lang

import (
	"redrive/internal/errortext/form"
	"regexp"
	"strings"
)

// clickhouseForm is an error of a server of ClickHouse. Its client says in between from where
// it received the error.
var clickhouseForm = regexp.MustCompile(`(?m)^(?:Error on processing query: )?Code: \d+\. ` +
	`(DB::\w+): (?:Received from \S+\. DB::\w+: )?(.+)$`)

// clickhouseTrace announces a stack on the lines below.
const clickhouseTrace = ", Stack trace (when copying this message, always include the lines below):"

// clickhouse reads the last error of a server of ClickHouse.
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
