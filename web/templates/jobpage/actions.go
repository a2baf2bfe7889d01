package jobpage

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"redrive/internal/job"
	"redrive/internal/rawjson"
	"redrive/internal/wire"
	"redrive/web/templates"
	"redrive/web/templates/format"
	"redrive/web/templates/link"
)

// actionsOf lists the actions on a job, the primary one last. What is not allowed
// now is there too and says why: buttons keep their places while the state changes.
func actionsOf(v View) []templates.Act {
	back := link.Job(v.Job.ID)
	discard := templates.JobAct(v.Frame, v.Job, "discard", "danger", back)
	cancel := templates.JobAct(v.Frame, v.Job, "cancel", "", back)
	replay := templates.JobAct(v.Frame, v.Job, "replay", "primary", back)
	replay.Word = "Replay, run " + strconv.Itoa(v.Job.Run+1)
	if v.Job.State == job.Retryable {
		replay.Word = "Replay now"
	}
	templates.Deny(&discard, v.Job.Discardable(), whyNoDiscard(v.Job))
	if v.Job.Restorable() {
		discard = templates.JobAct(v.Frame, v.Job, "restore", "", back)
	}
	templates.Deny(&cancel, v.Job.Cancellable(), "it is over")
	templates.Deny(&replay, v.Job.Replayable(), whyNoReplay(v.Job))
	if v.Job.Letter != job.LetterRefused {
		return []templates.Act{discard, cancel, replay}
	}
	forward := templates.JobAct(v.Frame, v.Job, "forward", "", back)
	templates.Deny(&forward, v.DeadLetters, templates.WhyNoForward(v.Job))
	return []templates.Act{discard, cancel, forward, replay}
}

// whyNoDiscard says why a job cannot be discarded in its state, as the end of a
// sentence.
func whyNoDiscard(j job.Job) string {
	return cmp.Or(map[job.State]string{
		job.Active:    "it runs now; cancel it instead",
		job.Completed: "it succeeded",
		job.Cancelled: "it was cancelled already",
		job.Discarded: "it was discarded already",
	}[j.State], "it is "+templates.StyleOf(j.Status()).Word)
}

// whyNoReplay says why a job cannot be replayed in its state. A job that waits
// for its first attempt is among them: there is nothing to replay yet.
func whyNoReplay(j job.Job) string {
	switch j.State {
	case job.Active:
		return "it runs now"
	case job.Completed:
		return "it succeeded"
	}
	return "it has not failed and waits to run"
}

// whatIsOff says in words what the disabled buttons say to the pointer.
func whatIsOff(acts []templates.Act) string {
	var off []string
	for _, a := range acts {
		if a.Denied != "" {
			off = append(off, fmt.Sprintf("%s is off: %s.", format.UpperFirst(a.Kind), strings.TrimRight(a.Denied, ".")))
		}
	}
	return strings.Join(off, " ")
}

// maxCurlPayload bounds the command that is offered for copying.
const maxCurlPayload = 16 << 10

// replayCommand replays the run that the page shows, from a shell.
func replayCommand(j job.Job) string {
	return fmt.Sprintf("curl -X POST \"$REDRIVE%s\" \\\n  -H 'Content-Type: application/json' \\\n  -d '{\"run\":%d}'",
		"/api/v1"+string(link.JobAction(j.ID, "replay")), j.Run)
}

// enqueueCommand sends the same job again as a new one. It is empty when the
// payload is too large for a command line, or not JSON. The body stands in single
// quotes, so that a shell expands nothing in it, and no character in it is hidden:
// what is pasted is what was seen.
func enqueueCommand(j job.Job) string {
	if len(j.Payload) > maxCurlPayload || !utf8.Valid(j.Payload) || !rawjson.Valid(j.Payload) {
		return ""
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, `{"type":%s,"queue":%s`, quoteJSON(j.Type), quoteJSON(j.Queue))
	fmt.Fprintf(&b, `,"policy":%s`, wire.EncodePolicy(j.Policy))
	if j.Timeout > 0 {
		fmt.Fprintf(&b, `,"ttr":%s`, quoteJSON(wire.FormatDuration(j.Timeout)))
	}
	if j.Priority != 0 {
		fmt.Fprintf(&b, `,"priority":%d`, j.Priority)
	}
	if rawjson.Valid(j.Meta) {
		fmt.Fprintf(&b, `,"meta":%s`, j.Meta)
	}
	fmt.Fprintf(&b, `,"payload":%s}`, j.Payload)
	return "curl -X POST \"$REDRIVE/api/v1/jobs\" \\\n  -H 'Content-Type: application/json' \\\n  -d '" +
		strings.ReplaceAll(format.EscapeHidden(b.String()), "'", `'\''`) + "'"
}

// quoteJSON writes a name into the body of the command. It escapes <, > and & as
// encoding/json does.
func quoteJSON(s string) string {
	quoted, err := json.Marshal(s)
	if err != nil { // unreachable: every string can be marshalled
		return `""`
	}
	return string(quoted)
}
