package redissource

import (
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"

	"redrive/internal/source"
)

// scriptsAtOnce is how many scripts are sent before an answer is waited for.
const scriptsAtOnce = 50

// header gives a script its locals.
const header = `local id, witness, clean, queue, now, iso, due, payload = unpack(ARGV)
local %s = unpack(KEYS)
%s`

// check refuses, before the first write, what the user may not do: Redis does not take
// back what a script has done when it ends in an error. Redis before 7 cannot tell.
const check = `if redis.acl_check_cmd and not redis.acl_check_cmd('%[1]s', %[2]s) then
  return redis.error_reply('NOPERM the user may not run %[1]s on ' .. %[2]s)
end
`

// compose makes the scripts of the preset.
func (o *Origin) compose() {
	o.scripts = map[act]*redis.Script{}
	add := func(a act, text, writes []string) {
		if len(text) > 0 {
			o.scripts[a] = redis.NewScript(o.head(writes) + strings.Join(text, "\n"))
		}
	}
	for mode, text := range o.preset.Replay {
		add(act{source.Replay, mode}, text, o.at.Writes.Replay)
	}

	add(act{kind: source.Discard}, o.preset.Discard, o.at.Writes.Discard)
}

// head is the header of a script with these writes.
func (o *Origin) head(writes []string) string {
	var b strings.Builder
	for _, w := range writes {
		command, key, _ := strings.Cut(w, " ")
		fmt.Fprintf(&b, check, command, key)
	}

	return fmt.Sprintf(header, strings.Join(o.keys, ", "), b.String())
}
