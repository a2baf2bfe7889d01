// Package codec reads the records of systems that pack a job into bytes of their own,
// and makes the bytes for the next run. A codec splices: what it does not change stays
// as it was, to the byte. It builds nothing of what it reads: a serialised object of PHP
// is a text with a beginning that says its class.
package codec

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"redrive/internal/errortext"
	"redrive/internal/job"
	"redrive/internal/rawjson"
	"redrive/internal/source"
)

// Codec is the format of one system.
type Codec struct {
	// Read completes a record from its raw bytes. What it cannot read stays raw, with a
	// warning.
	Read func(r *source.Record)
	// Clean makes the bytes for the next run, or says why there can be none.
	Clean func(raw []byte, run Run) ([]byte, error)
	// Edit gives bytes another payload; nil where that cannot be done.
	Edit func(raw, payload []byte) ([]byte, error)
}

// Next makes the bytes for the next run, with another payload if it shall have one.
func (c Codec) Next(raw []byte, run Run) ([]byte, error) {
	edited, err := c.Edited(raw, run.Payload)
	if err != nil {
		return nil, err
	}

	return c.Clean(edited, run)
}

// Edited gives bytes another payload; nil leaves them as they are.
func (c Codec) Edited(raw, payload []byte) ([]byte, error) {
	if payload == nil {
		return raw, nil
	}

	if c.Edit == nil {
		return nil, errors.New("its payload cannot be changed")
	}

	return c.Edit(raw, payload)
}

// Run is what bytes are made for.
type Run struct {
	Mode    source.Mode
	Now     time.Time
	Target  string // the queue, where the preset looks it up
	ID      string // of a new message
	Payload []byte // nil: as it is
}

// Get is the codec of a name; ok is false when there is none.
func Get(name string) (c Codec, ok bool) {
	c, ok = codecs[name]
	return c, ok
}

// Fault returns what finds the reason for which the workers of a system could not read the
// fields of a record; empty if they can. It is for a system whose records are moved by the
// source itself, so that no codec cleans them. ok is false for all others.
func Fault(name string) (find func(Fields) string, ok bool) {
	find, ok = faults[name]
	return find, ok
}

var faults = map[string]func(Fields) string{
	"yii2":       func(f Fields) string { return faultOfYii([]byte(f["raw"])) },
	"yii2-redis": faultOfKept,
}

var codecs = map[string]Codec{
	"json":         {func(r *source.Record) { r.Payload = r.Raw }, asItIs, replaced},
	"laravel":      {readLaravel, cleanLaravel, wholeObject},
	"babel":        {forPHP(readBabel), cleanBabel, inMember("data", "{[")},
	"yii2":         {readYii, asItIs, nil},
	"frame":        {readFrame, cleanFrame, editFrame},    // babel, for consumers that know frames
	"unframe":      {readFrame, cleanUnframed, editFrame}, // and for those that do not
	"unframe-php":  {forPHP(readFrame), cleanUnframedForPHP, editFrame},
	"asynq":        {readAsynq, cleanAsynq, editAsynq},
	"sidekiq":      {readSidekiq, cleanSidekiq, inMember("args", "[")},
	"daycry":       {readDaycry, cleanDaycry, inMember("payload", "")},
	"daycry-redis": {readWaiting, cleanWaiting, editWaiting},
	"oban":         {readOban, asItIs, wholeObject},
	"activejob":    {readActiveJob, cleanActiveJob, inMember("arguments", "[")},
}

// replaced edits records that are nothing but the payload.
func replaced(_, payload []byte) ([]byte, error) { return payload, nil }

// wholeObject is replaced for records that must be objects.
func wholeObject(_, payload []byte) ([]byte, error) {
	if !isObject(payload) {
		return nil, errors.New("the payload must be a JSON object")
	}
	return payload, nil
}

// inMember edits records whose payload is a member of an object, and begins with one of
// these characters.
func inMember(name, kinds string) func(raw, payload []byte) ([]byte, error) {
	return func(raw, payload []byte) ([]byte, error) {
		if !isObject(raw) || member(raw, name) == nil {
			return nil, fmt.Errorf("the record is not a JSON object with a member %s", name)
		}

		if !json.Valid(payload) {
			return nil, errors.New("the payload must be JSON")
		}

		if kinds != "" && !strings.ContainsRune(kinds, rune(rawjson.Kind(payload))) {
			return nil, errors.New("the payload must be " + map[string]string{"[": "an array", "{[": "an object or an array"}[kinds])
		}

		return edited(raw, func(n string, _ []byte) ([]byte, bool) { return payload, n == name }), nil
	}
}

func asItIs(raw []byte, _ Run) ([]byte, error) { return raw, nil }

// unreadable leaves a record as it is, with a warning.
func unreadable(r *source.Record, problem string) {
	r.Payload = r.Raw
	r.Warnings = append(r.Warnings, "The record is shown raw: "+problem+".")
}

// member is a member of a JSON object; nil when there is none.
func member(object []byte, name string) []byte {
	if rawjson.Kind(object) != '{' {
		return nil
	}

	for m := range rawjson.Members(object) {
		if m.Name == name {
			return object[m.Value:m.To]
		}
	}

	return nil
}

// members are those of a JSON object, for a reader that wants many of them: the first
// reading of a source can take a million records.
type members map[string][]byte

func membersOf(object []byte) members {
	all := members{}
	for m := range rawjson.Members(object) {
		all[m.Name] = object[m.Value:m.To]
	}

	return all
}

func (m members) text(name string) string { return unquoted(m[name]) }

// textMember is the text of a member of an object; empty for any other value.
func textMember(object []byte, name string) string { return unquoted(member(object, name)) }

// unquoted is the text of a JSON string, and empty for any other value.
func unquoted(value []byte) string {
	if len(value) > 0 && value[0] == '"' {
		return rawjson.Text(value)
	}
	return ""
}

// numberMember is the whole number of a member of an object.
func numberMember(object []byte, name string) (int64, bool) {
	n, err := strconv.ParseInt(string(member(object, name)), 10, 64)
	return n, err == nil
}

// readLaravel reads a job of Laravel: the payload's class, data and limit, and the
// class, message and trace of its exception, which the record has as its error.
func readLaravel(r *source.Record) {
	r.Error, r.Trace = said(r.Error.Message)
	if !json.Valid(r.Raw) || rawjson.Kind(r.Raw) != '{' {
		unreadable(r, "its payload is not a JSON object, so it cannot be replayed")
		return
	}

	fault := faultOfLaravel(r.Raw)
	warn(r, fault != "", "It cannot be replayed: "+fault+".")

	r.Payload, r.Type = r.Raw, textMember(r.Raw, "displayName")
	if id := textMember(r.Raw, "uuid"); r.Lineage == "" && plainID.MatchString(id) { // the row has none
		r.Lineage = id
	}

	if n, ok := numberMember(r.Raw, "maxTries"); ok && n > 0 && n < 1<<16 {
		r.Limit = int(n)
	}

	if n, ok := numberMember(r.Raw, "attempts"); ok && n >= 0 && n < 1<<16 {
		r.Attempts = int(n) + 1
	}

	if made, ok := numberMember(r.Raw, "createdAt"); ok { // since Laravel 12, in seconds
		r.CreatedAt = possible(time.Unix(made, 0))
	}

	if until, ok := numberMember(r.Raw, "retryUntil"); ok {
		r.Warnings = append(r.Warnings, "Laravel runs it only until "+time.Unix(until, 0).UTC().Format("2006-01-02 15:04:05 MST")+
			". A replay after that takes this limit away, because Laravel would fail the job without running it.")
	}
}

// plainID is an id as Laravel makes it.
var plainID = regexp.MustCompile(`^[A-Za-z0-9-]{1,64}$`)

// faultOfLaravel says why a worker of Laravel would lose a job with this payload; empty when
// it would not. It would take the job out of its queue, fail to read it, and fail again when
// it writes down the failure. One without a job fails and is written down under its uuid.
func faultOfLaravel(raw []byte) string {
	switch problem := faultOfPHP(raw); {
	case problem != "":
		return "its payload " + problem + ", so a worker of Laravel would lose the job"
	case textMember(raw, "job") == "" && textMember(raw, "uuid") == "":
		return "its payload has neither a job nor a uuid, so a worker of Laravel would lose the job"
	}

	return ""
}

// depthOfPHP is how deep the arrays and objects can be that PHP's json_decode reads. Its
// limit of 512 levels counts what is in the innermost of them as a level too.
const depthOfPHP = 511

// faultOfPHP says why PHP cannot read a JSON object; empty when it can. It is stricter than
// the readers of most languages.
func faultOfPHP(raw []byte) string {
	problem := rawjson.Check(raw, depthOfPHP)
	half := ""
	if problem == "" {
		half = rawjson.HalfPair(raw)
	}

	switch {
	case len(bytes.TrimSpace(raw)) == 0:
		return "is empty"
	case problem != "":
		return problem
	case rawjson.Kind(raw) != '{':
		return "is not a JSON object"
	case half != "":
		return "has " + half + ", which is half of a character"
	}

	return ""
}

// cleanLaravel counts attempts from zero, where the payload counts them, and takes a
// time away that has passed: Laravel would fail the job without running it.
func cleanLaravel(raw []byte, run Run) ([]byte, error) {
	if fault := faultOfLaravel(raw); fault != "" {
		return nil, errors.New(fault)
	}

	return rawjson.Splice(raw, func(yield func(rawjson.Edit) bool) {
		for m := range rawjson.Members(raw) {
			with := ""
			if m.Name == "attempts" {
				with = "0"
			}

			until, err := strconv.ParseInt(string(raw[m.Value:m.To]), 10, 64)

			// "retryUntil":1767225600 is a time in seconds.
			if m.Name == "retryUntil" && err == nil && time.Unix(until, 0).Before(run.Now) {
				with = "null"
			}

			if with != "" && !yield(rawjson.Edit{From: m.Value, To: m.To, Text: []byte(with)}) {
				return
			}
		}
	}), nil
}

// said is an error that its system keeps as one text: everything that its language prints.
func said(text string) (job.ErrorInfo, string) {
	e := errortext.Text(text)
	return job.ErrorInfo{Type: e.Class, Message: e.Message}, e.Trace
}

// readBabel reads an envelope of BabelQueue, with or without its block of the dead
// letter. What the block says goes before what stands beside the envelope.
func readBabel(r *source.Record) {
	if rawjson.Kind(r.Raw) != '{' || !json.Valid(r.Raw) {
		unreadable(r, "it is not a JSON object")
		return
	}

	r.Payload, r.Type = member(r.Raw, "data"), textMember(r.Raw, "job")

	// An envelope has its type under job, or under urn.
	if r.Type == "" {
		r.Type = textMember(r.Raw, "urn")
	}

	meta, block := member(r.Raw, "meta"), member(r.Raw, "dead_letter")
	r.Meta, r.Lineage = meta, textMember(meta, "id")
	if made, ok := numberMember(meta, "created_at"); ok {
		r.CreatedAt = millis(made)
	}

	if failed, ok := numberMember(block, "failed_at"); ok {
		r.FailedAt = millis(failed)
	}

	r.Error = job.ErrorInfo{Type: textMember(block, "exception"), Message: textMember(block, "error")}
	if r.Error.Type == "" {
		r.Error.Type = textMember(block, "reason")
	}

	if n, ok := numberMember(block, "attempts"); ok && n >= 0 && n < 1<<16 {
		r.Attempts = int(n)
	}

	// An envelope with neither data nor a type has lost its body.
	if len(r.Payload) == 0 && r.Type == "" {
		unreadable(r, "its body was lost when it was set aside, so it cannot be replayed")
	} else if bytes.Equal(r.Payload, []byte("[]")) {
		r.Warnings = append(r.Warnings, "Its data is an empty list, which consumers in Go cannot read as an object.")
	}
}

// cleanBabel takes the block of the dead letter away and counts attempts from zero.
func cleanBabel(raw []byte, run Run) ([]byte, error) {
	if rawjson.Kind(raw) == '{' && member(raw, "data") == nil && textMember(raw, "job") == "" && textMember(raw, "urn") == "" {
		return nil, errLost
	}
	return cleanForPHP(raw, run)
}
