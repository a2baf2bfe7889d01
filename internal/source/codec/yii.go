package codec

import (
	"bytes"
	"cmp"
	"encoding/json"
	"strconv"
	"strings"

	"redrive/internal/job"
	"redrive/internal/rawjson"
	"redrive/internal/source"
)

// readYii reads a job of yii2-queue: its class, from the beginning of what PHP
// serialised or from the member "class" of JSON.
func readYii(r *source.Record) {
	r.Payload = r.Raw
	fault := faultOfYii(r.Raw)
	defer func() { warn(r, fault != "", "It cannot be replayed: "+fault+".") }()

	if rawjson.Kind(r.Raw) == '{' && json.Valid(r.Raw) {
		r.Type = textMember(r.Raw, "class")
		return
	}

	if class, ok := serialisedObject(r.Raw); ok {
		r.Type = strings.ToValidUTF8(class, "\ufffd")
		return
	}

	if isIgbinary(r.Raw) {
		unreadable(r, "it is packed by igbinary")
		return
	}

	unreadable(r, "it is neither a serialised object of PHP nor JSON")
}

// faultOfYii says why no serializer of yii2-queue could read a job: that of PHP, which is
// the default, or of JSON or igbinary. It is empty when one can. A worker that cannot read
// a job drops it, or ends and meets it again.
func faultOfYii(raw []byte) string {
	if rawjson.Kind(raw) == '{' {
		if fault := faultOfPHP(raw); fault != "" {
			return "its payload " + fault + ", so a worker of yii2-queue could not read it"
		}
		return ""
	}

	if _, ok := serialisedObject(raw); !ok && !isIgbinary(raw) {
		return "its payload is no object that PHP, JSON or igbinary has serialised, so a worker of yii2-queue could not read it"
	}

	return ""
}

// isIgbinary reports whether bytes begin as igbinary does, with its version.
func isIgbinary(raw []byte) bool {
	const header = 4
	return len(raw) > header && (bytes.HasPrefix(raw, []byte{0, 0, 0, 1}) || bytes.HasPrefix(raw, []byte{0, 0, 0, 2}))
}

// readKept reads what the listener of docs/sources-redis.md keeps of a job of yii2-queue:
// its message, which is the time to run, a semicolon and the job, and how it failed.
func readKept(r *source.Record, f Fields) {
	ttr, body, found := strings.Cut(f["message"], ";")
	if !found {
		r.Payload = []byte(f["message"])
		r.Warnings = append(r.Warnings, "The record is shown raw: its message has no time to run.")
	} else {
		r.Raw = []byte(body)
		readYii(r)
		r.Raw = nil
		r.Meta = facts("ttr", ttr)
	}

	fault := faultOfTTR(ttr)
	if !found {
		fault = faultOfKept(f)
	}

	warn(r, fault != "", "It cannot be replayed: "+fault+".")
	r.Error = job.ErrorInfo{Type: f["exception"], Message: f["error"]}
	r.Attempts, r.FailedAt = attemptCount(f["attempt"]), instant([]byte(f["failed_at"]))
}

// faultOfKept says why a worker of yii2-queue could not read the message that was kept of
// a job.
func faultOfKept(f Fields) string {
	ttr, body, _ := strings.Cut(f["message"], ";")
	return cmp.Or(faultOfTTR(ttr), faultOfYii([]byte(body)))
}

// faultOfTTR says why a worker of yii2-queue could not read a message that begins so; empty
// if that is a time to run.
func faultOfTTR(ttr string) string {
	if _, err := strconv.ParseUint(ttr, 10, 63); err != nil {
		return "its message does not begin with a time to run, so a worker of yii2-queue could not read it"
	}
	return ""
}
