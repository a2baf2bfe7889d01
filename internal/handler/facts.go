package handler

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"redrive/internal/job"
)

// facts is what a handler is told about the execution, beside the payload. All
// values are printable ASCII, so that they are safe in headers and variables.
type facts struct {
	id, typ, queue, run, attempt string
	idempotencyKey               string // the same for every attempt of a run
	traceparent                  string
	traceID                      string // that the producer gave, or empty
}

func factsOf(j job.Job) facts {
	run := strconv.Itoa(j.Run)
	return facts{
		id: escape(j.ID), typ: escape(j.Type), queue: escape(j.Queue), run: run,
		attempt:        strconv.Itoa(j.Attempts + 1),
		idempotencyKey: escape(j.ID) + "/" + run,
		traceparent:    traceparent(j),
		traceID:        escape(j.TraceID),
	}
}

// escape percent-encodes what is not visible ASCII, and the percent sign
// itself, so that the text can be recovered.
func escape(s string) string {
	if strings.IndexFunc(s, unsafeRune) < 0 {
		return s
	}
	var b strings.Builder
	for i := range len(s) {
		if c := s[i]; unsafeRune(rune(c)) {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

func unsafeRune(r rune) bool { return r <= ' ' || r > '~' || r == '%' }

// traceForm is version 00 of W3C Trace Context.
var traceForm = regexp.MustCompile(`^00-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}$`)

// traceparent is the one that the job brought along in its meta. Else it is
// made from the producer's trace id, where that has the form of one, or from
// the job's own id: then all attempts and runs share the trace, and each
// execution is a span of its own.
func traceparent(j job.Job) string {
	var meta struct {
		Traceparent string `json:"traceparent"`
	}
	if err := json.Unmarshal(j.Meta, &meta); err == nil && validTrace(meta.Traceparent) {
		return meta.Traceparent
	}
	trace, ok := traceOf(j.TraceID)
	if !ok {
		sum := sha256.Sum256([]byte(j.ID))
		trace = hex.EncodeToString(sum[:16])
	}
	span := sha256.Sum256(fmt.Appendf(nil, "%s/%d/%d", j.ID, j.Run, j.Execution))
	return "00-" + trace + "-" + hex.EncodeToString(span[:8]) + "-01"
}

// traceIDForm is 32 hexadecimal digits, or a UUID.
var traceIDForm = regexp.MustCompile(`^([0-9a-f]{32}|[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12})$`)

// traceOf makes the trace id of a traceparent out of a producer's.
func traceOf(id string) (trace string, ok bool) {
	id = strings.ToLower(id)
	return strings.ReplaceAll(id, "-", ""), traceIDForm.MatchString(id) && strings.Trim(id, "0-") != ""
}

func validTrace(s string) bool {
	parts := traceForm.FindStringSubmatch(s)
	return parts != nil && strings.Trim(parts[1], "0") != "" && strings.Trim(parts[2], "0") != ""
}
