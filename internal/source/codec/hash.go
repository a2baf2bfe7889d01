package codec

import (
	"encoding/base64"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"redrive/internal/rawjson"
	"redrive/internal/source"
)

// Fields are those of a record that is kept as a hash. One that the hash does not have is
// empty.
type Fields map[string]string

// Hash completes a record from the fields of its hash, for the systems that keep it in
// one; ok is false for a name that is not of such a system.
func Hash(name string) (read func(*source.Record, Fields), ok bool) {
	read, ok = hashes[name]
	return read, ok
}

var hashes = map[string]func(*source.Record, Fields){
	"bullmq":     readBull,
	"yii2-redis": readKept,
	"rq":         readRQ,
}

// readBull reads a job of BullMQ. Its class of error is what stands before the colon in
// the last of its stacks.
func readBull(r *source.Record, f Fields) {
	r.Type, r.Payload = f["name"], []byte(f["data"])

	r.Error.Message = f["failedReason"]
	var stacks []string

	// A job keeps a stack of each failure, the last one at the end.
	if json.Unmarshal([]byte(f["stacktrace"]), &stacks) == nil && len(stacks) > 0 {
		r.Trace = stacks[len(stacks)-1]
		r.Error.Type = classOfStack(r.Trace)
	}

	r.Attempts = attemptCount(f["atm"])
	r.Limit = 1
	if n, ok := count(member([]byte(f["opts"]), "attempts")); ok && n > 0 {
		r.Limit = n
	}

	r.FailedAt, r.CreatedAt = instant([]byte(f["finishedOn"])), instant([]byte(f["timestamp"]))
	r.Meta = facts("opts", f["opts"], "parent", f["parentKey"], "deduplication", f["deid"], "repeat", f["rjk"])
	warn(r, r.Error.Type == "UnrecoverableError", "It ended its attempts on purpose: its processor threw an UnrecoverableError.")
	warn(r, f["parentKey"] != "", "It is a child of "+f["parentKey"]+". When a parent has failed with its child, replay the child first and "+
		"then the parent. A discard is left to BullMQ itself, which has to tell the parent.")
	warn(r, f["deid"] != "", "Its deduplication ended when it failed: a newer job with the same key can be in the queue.")
	warn(r, f["finishedOn"] == "", "It does not say when it failed, so it cannot be told from a later failure and is not replayed.")
}

// classOfStack is the class of an error, from the first line of its stack.
func classOfStack(stack string) string {
	line, _, _ := strings.Cut(stack, "\n")

	name, _, found := strings.Cut(line, ":")
	if !found || name == "" || strings.ContainsAny(name, " \t/") {
		return ""
	}

	return name
}

// attemptCount is a number of attempts, 0 for one that cannot be.
func attemptCount(text string) int {
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return 0
	}

	return int(n)
}

// readRQ reads a job of RQ. What it was given is packed by pickle, which can run programs
// when it is unpacked: the job is shown by its description, or by its JSON if that is what
// zlib has packed.
func readRQ(r *source.Record, f Fields) {
	r.Type, _, _ = strings.Cut(f["description"], "(")
	r.Payload = []byte(f["description"])
	if data := inflated([]byte(f["data"])); rawjson.Kind(data) == '[' && json.Valid(data) {
		r.Payload = data
	}

	packed, err := base64.StdEncoding.DecodeString(f["exc_string"])
	if err != nil || len(packed) == 0 {
		packed = []byte(f["exc_info"]) // of RQ before 1.12, and on Redis before 5
	}

	r.Trace = string(inflated(packed))
	r.Error, r.Trace = said(r.Trace)
	r.FailedAt, r.CreatedAt = utc(f["ended_at"]), utc(f["created_at"])
	r.Meta = facts("description", string(rawjson.Quote(f["description"])), "origin", string(rawjson.Quote(f["origin"])),
		"timeout", f["timeout"], "retries_left", f["retries_left"], "enqueued_at", f["enqueued_at"], "worker", f["worker_name"],
		"dependencies", f["dependency_ids"])
	warn(r, f["status"] == "stopped", "It was stopped on purpose, it did not fail.")
	warn(r, f["origin"] != r.Queue, "It was enqueued in "+f["origin"]+" and lies beside "+r.Queue+": RQ itself has to requeue it.")
	warn(r, f["ended_at"] == "", "It does not say when it failed, so it cannot be told from a later failure and is not replayed.")
}

// utc reads a time that RQ has written.
func utc(text string) time.Time {
	at, err := time.Parse("2006-01-02T15:04:05.999999Z", text)
	if err != nil {
		return time.Time{}
	}

	return possible(at)
}
