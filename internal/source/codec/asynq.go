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
	taskRetry // the most retries
	taskRetried
	taskError
	taskTimeout  // seconds
	taskDeadline // seconds since 1970
	taskUnique   // the key of its lock
	taskFailedAt // seconds since 1970
	_
	_
	taskGroup
	taskHeaders // a map
)

// field is a field of a protobuf message: a number, or bytes.
type field struct {
	name     int
	number   uint64
	bytes    []byte
	from, to int // where it is, with its name
}

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
	if n <= 0 || tag>>3 == 0 || tag>>3 > 1<<29-1 {
		return f, 0
	}

	f.name = int(tag >> 3)
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
	case 2: // bytes after their number
		length, m := binary.Uvarint(rest)
		if m <= 0 || length > uint64(len(rest)-m) {
			return f, 0
		}

		f.bytes = rest[m : m+int(length)]

		return f, n + m + int(length)
	case 5: // four bytes
		size = 4
	default: // groups, which no program writes any more
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

	texts, numbers := map[int]string{}, map[int]int64{}
	var headers []string
	for _, f := range all {
		texts[f.name], numbers[f.name] = string(f.bytes), int64(f.number)
		if f.name == taskPayload {
			r.Payload = f.bytes
		}

		if f.name == taskHeaders {
			headers = append(headers, pair(f.bytes)...)
		}
	}

	r.Type, r.Error = texts[taskType], job.ErrorInfo{Message: texts[taskError]}
	r.Attempts, r.Limit = attempts(numbers[taskRetried]), attempts(numbers[taskRetry])
	r.FailedAt = possible(time.Unix(numbers[taskFailedAt], 0))
	r.Meta = facts("id", string(rawjson.Quote(texts[taskID])), "queue", string(rawjson.Quote(texts[taskQueue])),
		"timeout", positive(numbers[taskTimeout]), "deadline", secondsAsTime(numbers[taskDeadline]),
		"unique_key", texts[taskUnique], "group", texts[taskGroup], "headers", string(facts(headers...)))
	warn(r, passed(numbers[taskDeadline], time.Now()),
		"Its deadline has passed: asynq would fail it without running it. A replay from here gives it no deadline.")
	warn(r, texts[taskUnique] != "", "It is unique: while a newer task holds its lock it is not replayed.")
	warn(r, texts[taskGroup] != "", "It was aggregated in the group "+texts[taskGroup]+": a replay runs it alone.")
}

// pair is an entry of a map.
func pair(raw []byte) []string {
	all, _ := fieldsIn(raw)
	entry := make([]string, 2)
	for _, f := range all {
		if f.name == 1 || f.name == 2 {
			entry[f.name-1] = string(f.bytes)
		}
	}

	return []string{entry[0], string(rawjson.Quote(entry[1]))}
}

// attempts are the executions that belong to a number of retries; 0 for one that cannot
// be.
func attempts(retries int64) int {
	if retries < 0 || retries >= 1<<16-1 {
		return 0
	}
	return int(retries) + 1
}

func positive(n int64) string {
	if n <= 0 {
		return ""
	}
	return strconv.FormatInt(n, 10)
}

// secondsAsTime is a time that is kept in seconds; empty for none.
func secondsAsTime(seconds int64) string {
	if seconds <= 0 || seconds >= 1e11 {
		return ""
	}
	return time.Unix(seconds, 0).UTC().Format(time.RFC3339)
}

// passed reports whether a deadline is over; none is 0.
func passed(seconds int64, now time.Time) bool { return seconds > 0 && seconds < now.Unix() }

// cleanAsynq takes the count of retries away for a fresh replay, and in any a deadline
// that has passed.
func cleanAsynq(raw []byte, run Run) ([]byte, error) {
	all, ok := fieldsIn(raw)
	if !ok || len(all) == 0 {
		return nil, errors.New("the record is not a task of asynq that can be read exactly")
	}

	deadline := int64(0) // the last one counts, as everywhere in protobuf
	for _, f := range all {
		if f.name == taskDeadline {
			deadline = int64(f.number)
		}
	}

	clean := slices.Clone(raw)
	for _, f := range slices.Backward(all) {
		if f.name == taskRetried && run.Mode == source.Fresh || f.name == taskDeadline && passed(deadline, run.Now) {
			clean = slices.Delete(clean, f.from, f.to)
		}
	}

	return clean, nil
}

// editAsynq puts another payload where the old one was, or after the type of a task that
// had none, as asynq orders its fields.
func editAsynq(raw, payload []byte) ([]byte, error) {
	all, ok := fieldsIn(raw)
	if !ok || len(all) == 0 {
		return nil, errors.New("the record is not a task of asynq that can be read exactly")
	}

	if !json.Valid(payload) {
		return nil, errors.New("the payload must be JSON")
	}

	text := binary.AppendUvarint([]byte{taskPayload<<3 | 2}, uint64(len(payload)))
	text = append(text, payload...)

	at, edited := 0, slices.Clone(raw)
	for _, f := range slices.Backward(all) {
		switch {
		case f.name == taskPayload:
			edited, at = slices.Delete(edited, f.from, f.to), f.from
		case f.name == taskType && at == 0:
			at = f.to
		}
	}

	return slices.Insert(edited, at, text...), nil
}
