package codec

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"redrive/internal/job"
	"redrive/internal/rawjson"
	"redrive/internal/source"
)

// readActiveJob reads a job of Active Job: its arguments, with what Rails marks in them
// shown as it is, how often it ran, and its error, which GoodJob writes as a text and Solid
// Queue as JSON. Active Job writes down how often a job ran when it enqueues it: the
// execution that failed is not among these.
func readActiveJob(r *source.Record) {
	if rawjson.Kind([]byte(r.Error.Message)) == '{' && json.Valid([]byte(r.Error.Message)) {
		e := []byte(r.Error.Message)
		r.Error = job.ErrorInfo{Type: textMember(e, "exception_class"), Message: textMember(e, "message")}
		r.Trace = lines(member(e, "backtrace"))
	} else if m := raised.FindStringSubmatch(r.Error.Message); m != nil {
		r.Error = job.ErrorInfo{Type: m[1], Message: m[2]}
	}

	if !json.Valid(r.Raw) || rawjson.Kind(r.Raw) != '{' {
		unreadable(r, "its arguments are not a JSON object")
		return
	}

	r.Payload = member(r.Raw, "arguments")
	if r.Payload == nil {
		r.Payload = r.Raw
	}

	if n, ok := numberMember(r.Raw, "executions"); ok && n >= 0 && n < 1<<16 && r.Attempts == 0 {
		r.Attempts = int(n) + 1
	}
}

// raised is an error of Ruby, as GoodJob writes it.
var raised = regexp.MustCompile(`^([A-Z][A-Za-z0-9_]*(?:::[A-Z][A-Za-z0-9_]*)*): ((?s).*)$`)

// lines are the texts of a JSON array, each in a line.
func lines(array []byte) string {
	if rawjson.Kind(array) != '[' {
		return ""
	}

	var all []string
	for e := range rawjson.Elements(array) {
		all = append(all, rawjson.Text(e))
	}

	return strings.Join(all, "\n")
}

// cleanActiveJob counts executions from zero, all and those of each error.
func cleanActiveJob(raw []byte, _ Run) ([]byte, error) {
	if !json.Valid(raw) || rawjson.Kind(raw) != '{' {
		return nil, fmt.Errorf("its arguments are not a JSON object")
	}

	return rawjson.Splice(raw, func(yield func(rawjson.Edit) bool) {
		for m := range rawjson.Members(raw) {
			with := map[string]string{"executions": "0", "exception_executions": "{}"}[m.Name]
			if with != "" && !yield(rawjson.Edit{From: m.Value, To: m.To, Text: []byte(with)}) {
				return
			}
		}
	}), nil
}

// readOban reads a job of Oban. Its errors have their class and their trace in one text.
func readOban(r *source.Record) {
	r.Payload = r.Raw
	r.Error, r.Trace = said(r.Error.Message)
	for i := range r.History {
		r.History[i].Error, r.History[i].Trace = said(r.History[i].Error.Message)
	}
}
