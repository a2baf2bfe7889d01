package jobpage

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"redrive/internal/access"
	"redrive/internal/job"
	"redrive/internal/rawjson"
	"redrive/internal/wire"
	"redrive/web/templates"
	"redrive/web/templates/format"
	"redrive/web/templates/link"
)

// actionsOf lists what can be done to a job in its state, the primary act last. What
// is only forbidden is there too, and says why.
func actionsOf(v View) (all []templates.Act) {
	if v.Job.Source != "" {
		return sourceActs(v)
	}

	back := link.Job(v.Job.ID)
	add := func(applies bool, kind, class string) {
		if applies {
			all = append(all, templates.JobAct(v.Frame, v.Job, kind, class, back))
		}
	}
	add(v.Job.Restorable(), "restore", "")
	add(v.Job.Discardable(), "discard", "danger")
	add(v.Job.Cancellable(), "cancel", "")

	if v.Job.DeadLetter == job.DeadLetterRefused {
		add(true, "forward", "")
		templates.Deny(&all[len(all)-1], v.KeepsDeadLetters, templates.WhyNoForward(v.Job))
	}

	waits := v.Job.State == job.Scheduled || v.Job.State == job.Retryable
	if v.Job.Replayable() {
		// A replay is not the first choice for a job that will run without one, nor where
		// another run would end as this one did.
		class := "primary"
		if waits || !v.Job.Reason.ReplayHelps() {
			class = ""
		}

		add(true, "replay", class)

		all[len(all)-1].Word = "Replay, run " + strconv.Itoa(v.Job.Run+1)
	}

	if waits {
		add(true, "reschedule", "primary")

		// The button itself means at once; a menu offers later times.
		all[len(all)-1] = all[len(all)-1].Sending("delay", "0s")
	}

	return all
}

// delayed is a choice of when a job runs later.
type delayed struct {
	word string
	at   time.Time
}

// delays are the choices of the menu, counted from when the job would run.
func delays(v View) []delayed {
	from := latest(v.Job.RunAt, v.Now.Truncate(time.Second))

	return []delayed{
		{"By 15 min", from.Add(15 * time.Minute)},
		{"By 1 h", from.Add(time.Hour)},
		{"By 1 day", from.Add(format.Day)},
	}
}

// choiceOf is the button of a choice.
func choiceOf(v View, d delayed) templates.Act {
	a := templates.JobAct(v.Frame, v.Job, "reschedule", "row", link.Job(v.Job.ID)).Sending("run_at", format.Machine(d.at))
	a.Word, a.Icon, a.About = d.word, "later", ""
	return a
}

// untilValue is the time at which the field begins, as browsers write it.
func untilValue(v View) string { return delays(v)[1].at.UTC().Format("2006-01-02T15:04") }

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

// whatIsOff says in words what the disabled buttons say to the pointer. When all of
// them are off, a banner on every page says why.
func whatIsOff(v View, acts []templates.Act) string {
	if v.Denied(access.Operate, "") != "" {
		return ""
	}

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

// command does something with the job from a shell.
type command struct{ about, text string }

// commandsOf are the commands that fit the job in its state.
func commandsOf(v View) (all []command) {
	id, run := v.Job.ID, v.Job.Run
	if v.Job.Replayable() {
		body := fmt.Sprintf(`{"run":%d}`, run)
		all = append(all, command{fmt.Sprintf("Replay run %d", run), v.Curl("/api/v1"+string(link.JobAction(id, "replay")), body)})
	}

	if body := enqueueBody(v.Job); body != "" && v.Job.Source == "" {
		all = append(all, command{"Enqueue the same as a new job", v.Curl("/api/v1/jobs", body)})
	}

	return all
}

// enqueueBody asks for the same job again as a new one. It is empty when the payload
// is too large for a command line, or not JSON.
func enqueueBody(j job.Job) string {
	if len(j.Payload) > maxCurlPayload || !utf8.Valid(j.Payload) || !rawjson.Valid(j.Payload) {
		return ""
	}

	var b bytes.Buffer
	fmt.Fprintf(&b, `{"type":%s,"queue":%s`, quoteJSON(j.Type), quoteJSON(j.Queue))

	// The policy is written out, so that the new job has it even if the configuration has
	// changed.
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

	return b.String()
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
