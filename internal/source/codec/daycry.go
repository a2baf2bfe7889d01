package codec

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"redrive/internal/rawjson"
	"redrive/internal/source"
)

// readDaycry reads a job of daycry/jobs. What the worker counts are its cycles: one in
// which the handler is tried several times, and at the end of which a new row is made.
func readDaycry(r *source.Record) {
	readCycles(r)
	warnDaycry(r)
}

// warnDaycry says of a record that a worker could not read it.
func warnDaycry(r *source.Record) {
	fault := faultOfDaycry(r.Raw)
	warn(r, fault != "", "It cannot be replayed: "+fault+".")
}

// faultOfDaycry says why a worker of daycry/jobs would lose a job that is written like this;
// empty when it would not. It would take the job out of its queue, and fail to read it.
func faultOfDaycry(raw []byte) string {
	problem := faultOfPHP(raw)
	if problem == "" {
		return ""
	}

	return "its payload " + problem + ", so a worker of daycry/jobs would lose the job"
}

// readCycles reads the job itself.
func readCycles(r *source.Record) {
	if !json.Valid(r.Raw) || rawjson.Kind(r.Raw) != '{' {
		unreadable(r, "its payload is not a JSON object")
		return
	}

	r.Payload, r.Type = member(r.Raw, "payload"), textMember(r.Raw, "name")
	if r.Type == "" {
		r.Type = textMember(r.Raw, "job")
	}

	if n, ok := numberMember(r.Raw, "attempts"); ok && n >= 0 && n < 1<<16 {
		r.Attempts = int(n) + 1
	}

	if n, ok := numberMember(r.Raw, "maxRetries"); ok && n >= 0 && n < 1<<16 {
		r.Limit = int(n) + 1
	}

	// The dead-letter queue writes where the job came from, and why, into the payload.
	block := member(r.Payload, "_dlq_metadata")
	if r.Queue == "" {
		r.Queue = textMember(block, "original_queue")
	}

	r.Error.Message = textMember(block, "dlq_reason")
	if r.Queue == "" {
		r.Warnings = append(r.Warnings, "Nothing says which queue it came from, so it cannot be replayed.")
	}
}

// cleanDaycry sends a job back to its queue with its cycles counted from zero. Without
// its schedule, a failure does not make it wait for an hour.
func cleanDaycry(raw []byte, run Run) ([]byte, error) {
	fault := faultOfDaycry(raw)
	if fault != "" {
		return nil, errors.New(fault)
	}

	if run.Target == "" {
		return nil, fmt.Errorf("nothing says which queue the job came from; name one in redrive.yaml, as default_queue on Redis")
	}

	return rawjson.Splice(raw, func(yield func(rawjson.Edit) bool) {
		for m := range rawjson.Members(raw) {
			with := map[string][]byte{"queue": rawjson.Quote(run.Target), "attempts": []byte("0"), "schedule": []byte("null")}[m.Name]

			// The block of the dead letter goes out of the payload.
			if m.Name == "payload" {
				with = withoutBlock(raw[m.Value:m.To])
			}

			if with != nil && !yield(rawjson.Edit{From: m.Value, To: m.To, Text: with}) {
				return
			}
		}
	}), nil
}

// withoutBlock is the user's part of a job without what the dead-letter queue added; nil
// when that has added nothing.
func withoutBlock(payload []byte) []byte {
	const block = "_dlq_metadata"
	if member(payload, block) == nil {
		return nil
	}

	return without(payload, func(name string) bool { return name == block })
}

// readWaiting reads an element of a list of daycry/jobs: the job with an id around it.
// What the job says of its queue goes before what its reader supposes.
func readWaiting(r *source.Record) {
	raw, supposed := r.Raw, r.Queue
	data := member(raw, "data")
	if !isObject(raw) || rawjson.Kind(data) != '{' {
		unreadable(r, "it is not a job in JSON")
		return
	}

	r.Queue = textMember(member(member(data, "payload"), "_dlq_metadata"), "original_queue")
	if r.Queue == "" {
		r.Queue = supposed
	}

	r.Raw = data
	readCycles(r)
	r.Raw, r.Meta = raw, metaOf(data, "payload")
	warnDaycry(r)

	if at, ok := numberMember(raw, "time"); ok {
		r.FailedAt = possible(time.Unix(at, 0))
	}

	warn(r, r.Limit > 1, "Its maxRetries is 1 or more. On Redis, daycry/jobs runs such a job again without end while it fails.")
}

// cleanWaiting sends a job back to its queue, with the id around it.
func cleanWaiting(raw []byte, run Run) ([]byte, error) {
	fault := faultOfDaycry(raw) // its worker reads the job with the id around it
	if fault != "" {
		return nil, errors.New(fault)
	}

	if !isObject(raw) {
		return nil, fmt.Errorf("the record is not a JSON object that can be read exactly")
	}

	data, err := cleanDaycry(member(raw, "data"), run)
	if err != nil {
		return nil, err
	}

	return edited(raw, func(name string, _ []byte) ([]byte, bool) { return data, name == "data" }), nil
}

// editWaiting gives a job another payload, with the id around it.
func editWaiting(raw, payload []byte) ([]byte, error) {
	data, err := inMember("payload", "")(member(raw, "data"), payload)
	if err != nil {
		return nil, err
	}

	return edited(raw, func(name string, _ []byte) ([]byte, bool) { return data, name == "data" }), nil
}
