package codec

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"time"

	"redrive/internal/job"
	"redrive/internal/rawjson"
	"redrive/internal/source"
)

// The fields of a task of asynq, by their numbers in its protobuf.
const (
	taskType = iota + 1
	taskPayload
	taskID
	taskQueue
	taskMaxRetries
	taskRetries
	taskError
	taskTimeout  // seconds
	taskDeadline // seconds since 1970
	taskUnique   // the key of its lock
	taskFailedAt // seconds since 1970
	_            // for how long the task is kept when it has succeeded
	_            // when it succeeded
	taskGroup
	taskHeaders // a map
)

// field is a field of a protobuf message. It has a number or bytes; the values of four and of
// eight bytes are not kept, because asynq has none.
type field struct {
	id       int
	number   uint64
	bytes    []byte
	from, to int // its place in the message, with its tag
}

// maxFieldID is the highest number that protobuf gives a field.
const maxFieldID = 1<<29 - 1

// fieldsIn walks through a message; ok is false when it is not one.
func fieldsIn(raw []byte) (all []field, ok bool) {
	at := 0
	for at < len(raw) {
		f, n := nextField(raw[at:])
		if n <= 0 {
			return nil, false
		}

		f.from, f.to = at, at+n
		all = append(all, f)
		at += n
	}

	return all, true
}

// nextField reads one field and tells how many bytes it has; 0 when it cannot be read.
func nextField(raw []byte) (f field, size int) {
	tag, n := binary.Uvarint(raw)
	if n <= 0 || tag>>3 == 0 || tag>>3 > maxFieldID {
		return f, 0
	}

	// The tag has the number of the field, and in its last three bits the kind.
	f.id = int(tag >> 3)
	rest := raw[n:]
	switch tag & 7 {
	case 0: // a number
		v, m := binary.Uvarint(rest)
		if m <= 0 {
			return f, 0
		}

		f.number = v

		return f, n + m
	case 1: // eight bytes
		size = 8
	case 2: // bytes after their length
		length, m := binary.Uvarint(rest)
		if m <= 0 || length > uint64(len(rest)-m) {
			return f, 0
		}

		f.bytes = rest[m : m+int(length)]

		return f, n + m + int(length)
	case 5: // four bytes
		size = 4
	default: // groups, which no program writes any more, and what is no kind of field
		return f, 0
	}

	if len(rest) < size {
		return f, 0
	}

	return f, n + size
}

// readAsynq reads a task of asynq.
func readAsynq(r *source.Record) {
	all, ok := fieldsIn(r.Raw)
	if !ok || len(all) == 0 {
		unreadable(r, "it is not a task of asynq")
		return
	}

	// A field that comes twice has the value that comes last, but the headers are a map, of
	// which each entry comes as a field.
	texts, numbers := map[int]string{}, map[int]int64{}
	var headers []string
	for _, f := range all {
		texts[f.id], numbers[f.id] = string(f.bytes), int64(f.number)
		if f.id == taskPayload {
			r.Payload = f.bytes
		}

		if f.id == taskHeaders {
			headers = append(headers, pair(f.bytes)...)
		}
	}

	r.Type, r.Error = texts[taskType], job.ErrorInfo{Message: texts[taskError]}
	r.Attempts, r.Limit = attempts(numbers[taskRetries]), attempts(numbers[taskMaxRetries])
	r.FailedAt = possible(time.Unix(numbers[taskFailedAt], 0))
	r.Meta = facts("id", string(rawjson.Quote(texts[taskID])), "queue", string(rawjson.Quote(texts[taskQueue])),
		"timeout", textIfPositive(numbers[taskTimeout]), "deadline", secondsAsTime(numbers[taskDeadline]),
		"unique_key", texts[taskUnique], "group", texts[taskGroup], "headers", string(facts(headers...)))
	warn(r, passed(numbers[taskDeadline], time.Now()),
		"Its deadline has passed: asynq would fail it without running it. A replay from here gives it no deadline.")
	warn(r, texts[taskUnique] != "", "It is unique: while a newer task holds its lock it is not replayed.")
	warn(r, texts[taskGroup] != "", "It was aggregated in the group "+texts[taskGroup]+": a replay runs it alone.")
}

// pair is an entry of a map: its key, and its value as JSON. One that cannot be read is empty.
func pair(raw []byte) []string {
	all, _ := fieldsIn(raw)
	entry := make([]string, 2)
	for _, f := range all {
		if f.id == 1 || f.id == 2 {
			entry[f.id-1] = string(f.bytes)
		}
	}

	return []string{entry[0], string(rawjson.Quote(entry[1]))}
}

// maxRetries is a number that no task counts up to: from there on, it is taken for unknown.
const maxRetries = 1<<16 - 1

// attempts are the executions of a task: one more than its retries, since the first is none. It
// is 0 for a number that cannot be.
func attempts(retries int64) int {
	if retries < 0 || retries >= maxRetries {
		return 0
	}
	return int(retries) + 1
}

// textIfPositive is a number as a text; empty for none.
func textIfPositive(n int64) string {
	if n <= 0 {
		return ""
	}
	return strconv.FormatInt(n, 10)
}

// maxSeconds is after the last year that RFC 3339 can write.
const maxSeconds = 1e11

// secondsAsTime is a time that is kept in seconds; empty for none.
func secondsAsTime(seconds int64) string {
	if seconds <= 0 || seconds >= maxSeconds {
		return ""
	}
	return time.Unix(seconds, 0).UTC().Format(time.RFC3339)
}

// passed reports whether a deadline is over; none is 0.
func passed(seconds int64, now time.Time) bool { return seconds > 0 && seconds < now.Unix() }

// cleanAsynq removes the count of retries for a fresh replay, and for every replay a deadline
// that has passed: asynq would fail the task without running it.
func cleanAsynq(raw []byte, run Run) ([]byte, error) {
	all, ok := fieldsIn(raw)
	if !ok || len(all) == 0 {
		return nil, errors.New("the record is not a task of asynq that can be read exactly")
	}

	deadline := int64(0) // the last one counts, as everywhere in protobuf
	for _, f := range all {
		if f.id == taskDeadline {
			deadline = int64(f.number)
		}
	}

	// From the end, so that the places of the fields before stay right.
	clean := slices.Clone(raw)
	for _, f := range slices.Backward(all) {
		counted := f.id == taskRetries && run.Mode == source.Fresh
		late := f.id == taskDeadline && passed(deadline, run.Now)
		if counted || late {
			clean = slices.Delete(clean, f.from, f.to)
		}
	}

	return clean, nil
}

// editAsynq puts another payload in place of the old one. A task that had none gets it after
// its type, because asynq writes its fields in the order of their numbers.
func editAsynq(raw, payload []byte) ([]byte, error) {
	all, ok := fieldsIn(raw)
	if !ok || len(all) == 0 {
		return nil, errors.New("the record is not a task of asynq that can be read exactly")
	}

	if !json.Valid(payload) {
		return nil, errors.New("the payload must be JSON")
	}

	// The tag says which field it is, and that bytes follow their length.
	inserted := binary.AppendUvarint([]byte{taskPayload<<3 | 2}, uint64(len(payload)))
	inserted = append(inserted, payload...)

	// From the end, so that the places of the fields before stay right.
	at, edited := 0, slices.Clone(raw)
	for _, f := range slices.Backward(all) {
		switch {
		case f.id == taskPayload:
			edited, at = slices.Delete(edited, f.from, f.to), f.from
		case f.id == taskType && at == 0: // there was no payload behind it
			at = f.to
		}
	}

	return slices.Insert(edited, at, inserted...), nil
}
