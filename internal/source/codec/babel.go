package codec

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"redrive/internal/envelope"
	"redrive/internal/job"
	"redrive/internal/rawjson"
	"redrive/internal/source"
)

// unframed is the envelope in a frame, the object in which the SDKs put an envelope with
// headers when it travels through a list of Redis.
func unframed(raw []byte) (inner, headers []byte, framed bool) {
	if rawjson.Kind(raw) != '{' || !json.Valid(raw) || string(member(raw, "__bq_frame")) != "1" {
		return raw, nil, false
	}

	body := member(raw, "body")
	if len(body) == 0 || body[0] != '"' {
		return raw, nil, false
	}

	return []byte(rawjson.Text(body)), member(raw, "headers"), true
}

// readFrame reads an envelope of BabelQueue in its frame, or without one. What InitPHP
// wrote beside the frame, which it does not know, is read too.
func readFrame(r *source.Record) {
	raw := r.Raw
	inner, headers, framed := unframed(raw)
	if block := member(raw, "dead_letter"); framed && block != nil && isObject(inner) && member(inner, "dead_letter") == nil {
		inner = appended(inner, "dead_letter", block)
	}

	// The record is read as if it were the envelope alone, and keeps its frame.
	r.Raw = inner
	readBabel(r)

	if rawjson.Kind(r.Meta) != '{' || len(r.Meta) > job.MaxMeta {
		r.Meta = nil
	}

	if isObject(inner) {
		warnBabel(r)
	}

	r.Raw = raw
	if size := len(bytes.TrimSpace(headers)); size > len("{}") && len(r.Meta)+size+len(`{,"headers":}`) < job.MaxMeta {
		if r.Meta == nil {
			r.Meta = []byte("{}")
		}

		r.Meta = appended(r.Meta, "headers", headers)
	}

	if r.Lineage != "" { // an id is one of its queue: dead letters of two queues can have the same
		r.Lineage = r.Queue + "/" + r.Lineage
	}
}

// formal are the reasons for which a worker sets a message aside without trying it. That
// its attempts were none is mended by a replay.
var formal = []string{"missing_urn", "missing_meta", "unsupported_schema_version", "invalid_data", "missing_trace_id"}

func warnBabel(r *source.Record) {
	if r.CreatedAt.Unix() <= 0 { // an SDK that cannot read a message writes down 0
		r.CreatedAt = time.Time{}
	}

	block := member(r.Raw, "dead_letter")
	warn(r, block == nil, "It has no note of how it died.")

	if from := textMember(block, "original_queue"); from != "" && r.Queue != "" {
		warn(r, from != r.Queue, "Its note names the queue "+from+". A replay goes to "+r.Queue+", beside which it lies.")
	}

	warn(r, slices.Contains(formal, textMember(block, "reason")) && !lost(r.Raw),
		"The worker set it aside for its form, and does so again unless the worker has changed.")

	if lost(r.Raw) && member(r.Raw, "data") != nil { // without any data, this was said
		unreadable(r, "its body was lost when it was set aside, so it cannot be replayed")
	}
}

// lost reports whether nothing is left of a message but the note of how it died.
func lost(raw []byte) bool {
	data := member(raw, "data")
	return (data == nil || string(data) == "null") && textMember(raw, "job") == "" && textMember(raw, "urn") == ""
}

// cleanFrame is the envelope for the next attempt, in its frame if it has one.
func cleanFrame(raw []byte, run Run) ([]byte, error) {
	clean, err := cleanUnframed(raw, run)
	if _, _, framed := unframed(raw); err != nil || !framed {
		return clean, err
	}

	return edited(raw, func(name string, _ []byte) ([]byte, bool) { return rawjson.Encode(string(clean)), name == "body" }), nil
}

// cleanUnframed is the envelope for the next attempt, without its frame.
func cleanUnframed(raw []byte, run Run) ([]byte, error) {
	inner, _, _ := unframed(raw)
	if rawjson.Kind(inner) == '{' && lost(inner) {
		return nil, errLost
	}

	clean, ok := envelope.Tried(inner, 0)
	if !ok {
		return nil, errors.New("the message is not a JSON object that can be read exactly")
	}

	return renamed(clean, run)
}

// cleanUnframedForPHP is cleanUnframed for the workers of InitPHP Queue.
func cleanUnframedForPHP(raw []byte, run Run) ([]byte, error) {
	inner, _, _ := unframed(raw)
	if rawjson.Kind(inner) == '{' && lost(inner) {
		return nil, errLost
	}

	return cleanForPHP(inner, run)
}

// errLost says that a message cannot be replayed because nothing is left of it.
var errLost = errors.New("the body of the message was lost when it was set aside")

// forPHP warns of records that PHP cannot read.
func forPHP(read func(*source.Record)) func(*source.Record) {
	return func(r *source.Record) {
		read(r)
		inner, _, _ := unframed(r.Raw)
		fault := faultOfInitPHP(inner)
		warn(r, fault != "", "It cannot be replayed: "+fault+".")
	}
}

// faultOfInitPHP says why a worker of InitPHP Queue would lose a message. It takes what
// PHP cannot decode for an empty message, and sets that aside in its place.
func faultOfInitPHP(raw []byte) string {
	if fault := faultOfPHP(raw); fault != "" {
		return "its payload " + fault + ", so a worker of InitPHP Queue would lose it"
	}
	return ""
}

// cleanForPHP takes the block of the dead letter away and counts attempts from zero. Of a
// member that comes twice PHP takes the last one, so all of them are changed.
func cleanForPHP(raw []byte, run Run) ([]byte, error) {
	if fault := faultOfInitPHP(raw); fault != "" {
		return nil, errors.New(fault)
	}

	clean := edited(raw, func(name string, value []byte) ([]byte, bool) {
		if name == "attempts" {
			_, ok := count(value)
			return []byte("0"), ok
		}

		return nil, name == "dead_letter"
	})

	return renamed(clean, run)
}

// renamed gives an envelope the id of a new message, if it shall be one. The one that it
// has is what a guard against repeats knows it by.
func renamed(raw []byte, run Run) ([]byte, error) {
	meta := member(raw, "meta")
	switch {
	case run.Mode != source.New:
		return raw, nil
	case textMember(meta, "id") == "":
		return nil, errors.New("the message has no id that could be another one")
	case !isObject(raw):
		return nil, errors.New("the message has a member twice or is nested too deep, so that its id cannot be another one")
	}

	meta = edited(meta, func(name string, _ []byte) ([]byte, bool) { return rawjson.Quote(run.ID), name == "id" })

	return edited(raw, func(name string, _ []byte) ([]byte, bool) { return meta, name == "meta" }), nil
}

// editFrame gives an envelope other data, in its frame if it has one.
func editFrame(raw, payload []byte) ([]byte, error) {
	inner, _, framed := unframed(raw)
	with, err := inMember("data", "{[")(inner, payload)
	if err != nil || !framed {
		return with, err
	}

	return edited(raw, func(name string, _ []byte) ([]byte, bool) { return rawjson.Encode(string(with)), name == "body" }), nil
}
