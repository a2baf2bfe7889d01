package codec

import (
	"slices"
	"time"

	"redrive/internal/job"
	"redrive/internal/rawjson"
	"redrive/internal/source"
)

// Own is the format of a system that redrive.yaml describes: names says what the members
// of its records are called, and traces which of them its failures leave. Read is for
// records that are objects of JSON, and hash for those that are hashes.
func Own(names map[string]string, traces []string) (c Codec, hash func(*source.Record, Fields)) {
	o := own{names, traces}
	return Codec{o.read, o.clean, o.edit}, o.hash
}

type own struct {
	names  map[string]string
	traces []string
}

// read reads an object of JSON. Any other record is shown as it is, and can be replayed
// as it is.
func (o own) read(r *source.Record) {
	if !isObject(r.Raw) {
		unreadable(r, "it is not a JSON object that can be read exactly. A replay leaves it as it is")
		return
	}

	var shown []string
	for _, name := range o.names {
		shown = append(shown, name)
	}

	// A text is read without its quotation marks, and any other value as it is written.
	o.fill(r, func(name string) string {
		value := member(r.Raw, name)
		if len(value) > 0 && value[0] == '"' {
			return rawjson.Text(value)
		}

		return string(value)
	})

	// Without a field for the payload, the whole record is the payload.
	r.Payload = r.Raw
	if payload := member(r.Raw, o.names["payload"]); o.names["payload"] != "" && payload != nil {
		r.Payload, r.Meta = payload, metaOf(r.Raw, shown...)
	}
}

func (o own) hash(r *source.Record, f Fields) {
	o.fill(r, func(name string) string { return f[name] })
	r.Payload = []byte(f[o.names["payload"]])
}

// fill completes a record from its members, by their names.
func (o own) fill(r *source.Record, value func(name string) string) {
	get := func(what string) string {
		if name := o.names[what]; name != "" {
			return value(name)
		}
		return ""
	}
	if queue := get("queue"); queue != "" {
		r.Queue = queue
	}

	if lineage := get("thread"); lineage != "" {
		r.Lineage = r.Queue + "/" + lineage
	}

	r.Type, r.Trace = get("type"), get("trace")
	r.Error = job.ErrorInfo{Type: get("error_type"), Message: get("error")}
	r.Attempts, r.Limit = attemptCount(get("attempts")), attemptCount(get("limit"))
	r.FailedAt, r.CreatedAt = anyTime(get("failed_at")), anyTime(get("created_at"))
}

// anyTime reads a time: a number as instant does, or a text.
func anyTime(text string) time.Time {
	if at := instant([]byte(text)); !at.IsZero() {
		return at
	}

	for _, layout := range []string{time.RFC3339Nano, "2006-01-02 15:04:05", "2006-01-02T15:04:05"} {
		at, err := time.Parse(layout, text)
		if err == nil {
			return possible(at)
		}
	}

	return time.Time{}
}

// clean counts attempts from zero and takes out what the failure has left.
func (o own) clean(raw []byte, _ Run) ([]byte, error) {
	if !isObject(raw) {
		return raw, nil
	}

	var left []string
	for _, t := range o.traces {
		left = append(left, o.names[t])
	}

	return edited(raw, func(name string, _ []byte) ([]byte, bool) {
		switch {
		case name == "" || name == o.names["payload"]:
			return nil, false
		case name == o.names["attempts"]:
			return []byte("0"), true
		}

		return nil, slices.Contains(left, name)
	}), nil
}

// edit gives a record another payload: its member, or all of it.
func (o own) edit(raw, payload []byte) ([]byte, error) {
	if name := o.names["payload"]; name != "" && isObject(raw) {
		return inMember(name, "")(raw, payload)
	}
	return payload, nil
}
