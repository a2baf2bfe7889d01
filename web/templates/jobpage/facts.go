package jobpage

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"redrive/internal/audit"
	"redrive/internal/clip"
	"redrive/internal/job"
	"redrive/internal/operation"
	"redrive/internal/retry"
	"redrive/web/templates"
	"redrive/web/templates/format"
)

// deadLetterWay says where a dead letter of the job would go, or went.
func deadLetterWay(v View) string {
	switch l := v.deadLetter(); {
	case l != nil && l.ForwardedTo != "":
		return "stored in Redrive, a copy sent to " + format.Visible(l.ForwardedTo)
	case setAside(v):
		return "always stored in Redrive: set aside before it ran"
	case v.ForwardedTo != "":
		return "forwarded to " + format.Visible(v.ForwardedTo) + ", then stored in Redrive"
	case v.KeepsDeadLetters:
		return "stored in Redrive"
	}

	return "off for this queue: a dead letter is refused, and the job kept"
}

// poisoned reports whether the job is an envelope that could not be read.
func poisoned(j job.Job) bool { return slices.Contains(retry.Poison(), j.Reason) }

// setAside reports whether the dead letter of the run is an envelope that never
// ran: it could not be read, or a rule refused it. Such a dead letter is kept,
// whatever its queue does with others.
func setAside(v View) bool {
	l := v.deadLetter()
	return l != nil && l.Attempts == 0 && (slices.Contains(retry.Poison(), l.Reason) || l.Reason == retry.RuleDecided)
}

// maxShownEnvelope is how much of an envelope is on the page.
const maxShownEnvelope = 4 << 10

// envelopeText is the beginning of an envelope as it can be read. It is cut before
// the hidden characters are made visible, so that a large one costs little.
func envelopeText(envelope []byte) string {
	return format.VisibleLines(clip.Text(string(envelope[:min(len(envelope), 2*maxShownEnvelope)]), maxShownEnvelope))
}

// timeLimit is the longest that an attempt may take.
func timeLimit(d time.Duration) string {
	if d <= 0 {
		return "none"
	}
	return format.Duration(d) + " per attempt"
}

// priorityWords follow the queue of a job. A source may have priorities of its own.
func priorityWords(j job.Job) string {
	if j.Source != "" {
		return ""
	}
	return ", priority " + format.Number(j.Priority)
}

// metaFacts are the top-level entries of a job's meta object, as they were
// written; the trace id among them.
func metaFacts(meta json.RawMessage) []node {
	t := treeOf(meta, 4<<10)
	if t.root == nil || t.root.kind != objectNode {
		return nil
	}

	return t.root.children[:min(len(t.root.children), 20)]
}

// scalar is the text of a value in one line, without its quotes.
func (n node) scalar() string {
	if n.kind == objectNode || n.kind == arrayNode {
		return n.summary()
	}
	return format.Visible(strings.Trim(unescaped(n.text), `"`))
}

// event is an entry of a job's history.
type event struct {
	at        time.Time
	who       string // empty when no one in particular
	what      string
	operation int64     // the operation that did it, 0: none
	to        time.Time // to which the job was moved; zero: it was not
	step      int       // of the job: what comes first among events of one time
}

// maxEvents bounds the history on the page.
const maxEvents = 60

// historyOf lists what happened to a job between its attempts, newest first. An
// act of an operation is told once, by the operation: the replays and dead letters
// that it made are left out. What has one time is in the order in which it must
// have happened: run by run, the beginning of each first, then as it is gathered.
func historyOf(v View) []event {
	// A run has two steps: 2*run is its beginning, and 2*run+1 what happened in it and after
	// it.
	all, step := []event(nil), 2
	add := func(at time.Time, who, what string) {
		if !at.IsZero() {
			all = append(all, event{at: at, who: who, what: what, step: step})
		}
	}

	j := v.Job
	enqueued := "enqueued"
	if j.Key != "" {
		enqueued += ", key " + format.Visible(clip.Text(j.Key, 80))
	}

	add(j.EnqueuedAt, "", enqueued)

	// How each run ended, and what became of its dead letter.
	for _, l := range v.DeadLetters {
		step = 2*l.Run + 1
		switch {
		case j.Source != "" && l.Problem != "": // it came back: its act tells when
		case l.Refused:
			add(l.FailedAt, "", "dead letter refused: "+templates.Explain(l.Reason).Short)
		case l.Attempts == 0 && slices.Contains(retry.Poison(), l.Reason):
			add(l.FailedAt, "", "set aside: "+templates.Explain(l.Reason).Short)
		case l.Attempts == 0 && l.Reason == retry.RuleDecided:
			add(l.FailedAt, "", "set aside: refused by a rule")
		default:
			add(l.FailedAt, "", "dead-lettered: "+templates.Explain(l.Reason).Short)
		}

		add(l.ForwardedAt, "", "dead letter sent to "+format.Visible(l.ForwardedTo))

		if !v.byOperation(operation.Discard, l.DiscardedAt) {
			add(l.DiscardedAt, format.By(l.DiscardedBy), "discarded the dead letter")
		}
	}

	if v.Mirrored != nil {
		for _, a := range v.Mirrored.Acts {
			if word := endOfAct(j.Source, a); word != "" {
				step = 2*a.Run + 1
				add(a.EndedAt, "", word)
			}
		}
	}

	// How the runs began, by a person or by an operation.
	for _, r := range v.Replays {
		step = 2 * (r.Run + 1)
		if !v.byOperation(operation.Replay, r.At) {
			add(r.At, format.By(r.By), "replayed the job, run "+format.Number(r.Run+1))
		}
	}

	for _, a := range v.Bulk {
		all = append(all, event{at: a.At, who: format.By(a.By), what: operationWord(a), operation: a.Operation, step: stepOf(a)})
	}

	step = 2*j.Run + 1

	// What people did to the current run, and how that ended.
	for _, e := range slices.Backward(v.Trail) {
		if word := auditWord(e); word != "" {
			add(e.At, format.Visible(e.Actor.Name), word)
			all[len(all)-1].to = movedTo(e)
		}
	}

	switch {
	case j.State == job.Completed:
		add(j.FinishedAt, "", "succeeded")
	case j.State == job.Cancelled:
		add(latest(j.FinishedAt, j.ChangedAt), "", "cancelled manually")
	case j.State == job.Discarded && v.deadLetter() == nil:
		add(latest(j.FinishedAt, j.ChangedAt), "", "discarded: "+templates.Explain(j.Reason).Short)
	}

	slices.SortStableFunc(all, func(a, b event) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.step, b.step)) })
	slices.Reverse(all)

	return all
}

// stepOf is where in the life of the job an operation acted: it began the next
// run, or did something to the one that it found.
func stepOf(a operation.Act) int {
	if a.Kind == operation.Replay {
		return 2 * (a.Run + 1)
	}
	return 2*a.Run + 1
}

// byOperation reports whether it was an operation that did this, which says so
// itself.
func (v View) byOperation(kind operation.Kind, at time.Time) bool {
	return slices.ContainsFunc(v.Bulk, func(a operation.Act) bool { return a.Kind == kind && a.At.Equal(at) })
}

// operationWord says what an operation did to the job.
func operationWord(a operation.Act) string {
	switch a.Kind {
	case operation.Replay:
		return "replayed the job, run " + format.Number(a.Run+1) + ", with"
	case operation.Discard:
		return "moved the job to the trash with"
	}

	return "restored the job from the trash with"
}

// rescheduled is the action of the audit log that moved a job to another time.
const rescheduled = "job.reschedule"

// movedTo is the time to which an entry of the audit log moved the job; zero when it
// moved none, or lets it run at once.
func movedTo(e audit.Entry) time.Time {
	_, text, _ := strings.Cut(e.After, "; not before ")
	at, err := time.Parse(time.RFC3339, text)
	if err != nil || e.Action != rescheduled || !at.After(e.At) {
		return time.Time{}
	}

	return at
}

// auditWord says what of the audit log the other histories do not know, and
// nothing of what they do: an entry without a word is left out.
func auditWord(e audit.Entry) string {
	if e.Action == rescheduled && movedTo(e).IsZero() {
		return "chose Run now"
	}

	return map[string]string{
		rescheduled:   "rescheduled the job to run",
		"job.restore": "restored the job from the trash",
		audit.Reveal:  "viewed hidden values",
		"job.discard": "moved the job to the trash",
		"job.cancel":  "cancelled the job",
		"job.forward": "sent the dead letter again",
	}[e.Action]
}

// redacted reports whether the page hides something that can be revealed. Errors,
// traces and notes cannot: they were stored without their secrets.
func (v View) redacted() bool {
	j := v.Job
	return !v.Revealed && slices.ContainsFunc([][]byte{j.Payload, j.Meta, j.Envelope}, func(b []byte) bool {
		return bytes.Contains(b, []byte("••••••"))
	})
}

// isHidden reports whether a value of a payload stands for one that is redacted.
func isHidden(text string) bool {
	return strings.HasPrefix(text, "••••••#") && len(text) < 40
}

// policyFact is a field of a job's effective policy, and where it comes from.
type policyFact struct {
	name   string
	value  string
	codes  []string // instead of the value: names, as people write them
	origin string
}

// policyFields are the fields of a job's policy that matter under its
// strategy, and its time limit.
func policyFields(j job.Job) []policyFact {
	p := j.Policy
	var all []policyFact
	add := func(field, name, value string) {
		all = append(all, policyFact{name: name, value: value, origin: originWords(j.Origins[field])})
	}
	add("max_attempts", "Attempts", format.Number(p.Limit()))
	add("strategy", "Strategy", format.Visible(string(p.Strategy)))

	// What delays begin with. Immediate has no delays.
	switch p.Strategy {
	case retry.Immediate:
	case retry.Schedule:
		add("schedule", "Delays", format.ScheduleList(p.Schedule))
	default:
		add("initial_interval", "First delay", format.Duration(p.InitialInterval))
	}

	if p.Strategy == retry.Exponential || p.Strategy == retry.Polynomial {
		add("coefficient", "Coefficient", format.Factor(p.Coefficient))
	}

	if p.Strategy != retry.Immediate {
		add("max_interval", "Cap", format.Duration(p.MaxInterval))
		add("jitter", "Jitter", jitterWords(p.Jitter))
	}

	add("non_retryable_errors", "Never retried", "nothing")

	// The names of errors are shown as code, in place of "nothing".
	if len(p.NonRetryable) > 0 {
		all[len(all)-1].codes = p.NonRetryable
	}

	add("on_exhaustion", "On exhaustion", templates.ActionWord(p.OnExhaustion))
	add("ttr", "Time limit", timeLimit(j.Timeout))

	return all
}

// jitterWords says by how much chance changes a delay, or that it does not.
func jitterWords(j retry.Jitter) string {
	if !j.On() {
		return "off"
	}
	return format.Jitter(j)
}

// originWords says where a field comes from; see [job.Origins].
func originWords(code string) string {
	// A code such as "queue:orders/policy:patient" names the place, and the preset or policy
	// that the place uses.
	place, kind, name := code, "", ""
	for _, k := range []string{"preset", "policy"} {
		if i := strings.LastIndex(code, "/"+k+":"); i >= 0 {
			place, kind, name = code[:i], k, code[i+len(k)+2:]
		}
	}

	if kind != "" {
		return kind + " " + format.Visible(name) + ", named by " + placeWords(place)
	}

	switch who, what, _ := strings.Cut(place, ":"); who {
	case "":
		return ""
	case "built_in":
		return "built in"
	case "rule":
		return "set by the rule " + format.Visible(what)
	}

	return "from " + placeWords(place)
}

// placeWords names the place that a field comes from, by the code of its origin.
func placeWords(place string) string {
	switch who, what, _ := strings.Cut(place, ":"); who {
	case "job":
		return "the job itself"
	case "replay":
		return "a replay"
	case "type", "queue", "rule":
		return "the " + who + " " + format.Visible(what)
	case "default":
		return "the configured default"
	}

	return format.Visible(place)
}
