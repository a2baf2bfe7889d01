package codec

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"redrive/internal/job"
	"redrive/internal/rawjson"
	"redrive/internal/source"
)

// failures are the members that Sidekiq adds to a job that has failed.
var failures = []string{
	"retry_count", "failed_at", "retried_at", "error_message", "error_class", "error_backtrace", "discarded_at",
}

// readSidekiq reads a job of Sidekiq. Its times are seconds with a fraction before
// version 8, and whole milliseconds since.
func readSidekiq(r *source.Record) {
	if !isObject(r.Raw) {
		unreadable(r, "it is not a JSON object")
		return
	}

	all := membersOf(r.Raw)
	r.Queue, r.Lineage, r.Type = all.text("queue"), all.text("jid"), cmp.Or(all.text("wrapped"), all.text("class"))
	r.Payload = all["args"]
	r.Meta = metaOf(r.Raw, append([]string{"args", "queue"}, failures...)...)
	r.Error = job.ErrorInfo{Type: all.text("error_class"), Message: all.text("error_message")}

	r.Trace = backtrace(all.text("error_backtrace"))

	// retry_count and retry count only what follows the first attempt.
	r.Attempts = 1
	if n, ok := count(all["retry_count"]); ok {
		r.Attempts = n + 1
	}

	if n, ok := count(all["retry"]); ok {
		r.Limit = n + 1
	}

	r.CreatedAt, r.FailedAt = instant(all["created_at"]), instant(all["retried_at"])

	// A job that was not retried has no retried_at.
	if r.FailedAt.IsZero() {
		r.FailedAt = instant(all["failed_at"])
	}

	warnSidekiq(r, all)
}

func warnSidekiq(r *source.Record, all members) {
	has := func(names ...string) bool {
		return slices.ContainsFunc(names, func(n string) bool { return all[n] != nil })
	}
	warn(r, has("bid"), "It belongs to a batch, which has counted it as dead; a callback for that may have run.")
	warn(r, has("unique_for", "unique_until", "unique_digest", "lock_digest", "lock"),
		"It is unique: a replay from here runs without its lock.")
	warn(r, has("expires_in"), "It expires: Sidekiq Pro can drop it without running it.")
	warn(r, has("retry_for"), "It is retried for a time, not for a number of attempts: when that time has passed, its next failure is final.")
	warn(r, string(all["encrypt"]) == "true", "Its last argument is encrypted.")
}

// backtrace reads the lines of a trace, an array of JSON that zlib and base64 have packed.
func backtrace(packed string) string {
	if packed == "" {
		return ""
	}

	data, err := base64.StdEncoding.DecodeString(strings.NewReplacer("\n", "", "\r", "").Replace(packed))
	if err != nil {
		return ""
	}

	var lines []string
	if text := inflated(data); json.Unmarshal(text, &lines) != nil {
		return string(text)
	}

	return strings.Join(lines, "\n")
}

// cleanSidekiq makes a job for the queue. Once takes one from the count of its retries,
// as Sidekiq's own page does; fresh takes away all that its failures have added.
func cleanSidekiq(raw []byte, run Run) ([]byte, error) {
	if !isObject(raw) {
		return nil, errors.New("the record is not a JSON object that can be read exactly")
	}

	if textMember(raw, "queue") == "" {
		return nil, errors.New("the record does not name its queue")
	}

	stamp, stamped := timestamp(raw, run.Now), false
	clean := edited(raw, func(name string, value []byte) ([]byte, bool) {
		n, err := strconv.ParseInt(string(value), 10, 64)
		switch {
		case name == "enqueued_at":
			stamped = true
			return stamp, true
		case run.Mode == source.Fresh:
			return nil, slices.Contains(failures, name)
		case name == "retry_count" && err == nil:
			return strconv.AppendInt(nil, n-1, 10), true
		}

		return nil, false
	})

	// A job that never was in a queue has no enqueued_at.
	if !stamped {
		clean = appended(clean, "enqueued_at", stamp)
	}

	return clean, nil
}

// timestamp is an instant in the unit in which the job has its others.
func timestamp(raw []byte, now time.Time) []byte {
	for _, name := range []string{"enqueued_at", "created_at"} {
		if n, ok := numberMember(raw, name); ok && n > 1e11 {
			return strconv.AppendInt(nil, now.UnixMilli(), 10)
		}
	}

	return fmt.Appendf(nil, "%d.%06d", now.Unix(), now.Nanosecond()/1000)
}

// appended adds a member at the end of an object.
func appended(object []byte, name string, value []byte) []byte {
	end, comma := 1, ""
	for m := range rawjson.Members(object) {
		end, comma = m.To, ","
	}

	added := fmt.Appendf(nil, "%s%s:%s", comma, rawjson.Quote(name), value)

	return slices.Insert(slices.Clone(object), end, added...)
}
