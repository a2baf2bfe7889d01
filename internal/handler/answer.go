package handler

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"unicode"
	"unicode/utf8"

	"redrive/internal/clip"
	"redrive/internal/httpclient"
	"redrive/internal/job"
	"redrive/internal/retry"
)

// maxExcerpt is how much of a body that is plain text goes into the message.
const maxExcerpt = 512

// refused turns an answer that is no success into a failure.
func (s *service) refused(response *http.Response, body []byte) error {
	status := strings.TrimSpace(fmt.Sprintf("%d %s", response.StatusCode, http.StatusText(response.StatusCode)))
	f := s.failure(fmt.Sprintf("http.%d", response.StatusCode), status)
	if wait, ok := httpclient.RetryAfter(response); ok {
		f.Answer.RetryAfter = &wait
	}
	if said, ok := parseRefusal(body); ok {
		said.refine(f)
	} else if text := excerpt(body); text != "" {
		f.Message += ": " + text
	} else if response.StatusCode/100 == 3 {
		f.Message += ", redirects are not followed" + target(response)
	}
	return f
}

// target names where a redirect points.
func target(response *http.Response) string {
	location, err := response.Location()
	if err != nil {
		return ""
	}
	return " (to " + httpclient.WithoutSecrets(location) + ")"
}

// refusal is the JSON object "error" of an answer. Its fields are read one by
// one: a service that gets one wrong is still understood in the others.
type refusal struct {
	Type, Message, Code string
	Retryable           *bool
	Details             json.RawMessage
}

func parseRefusal(body []byte) (refusal, bool) {
	var envelope struct {
		Error map[string]json.RawMessage `json:"error"`
	}
	if err := json.Unmarshal(body, &envelope); err != nil || envelope.Error == nil {
		return refusal{}, false
	}
	r := refusal{
		Type:    field[string](envelope.Error, "type"),
		Message: field[string](envelope.Error, "message"),
		Code:    field[string](envelope.Error, "code"),
		Details: envelope.Error["details"],
	}
	r.Retryable = field[*bool](envelope.Error, "retryable")
	return r, true
}

// field returns the zero value for a field that is absent or of another type.
func field[T any](object map[string]json.RawMessage, name string) T {
	var value, zero T
	if err := json.Unmarshal(object[name], &value); err != nil {
		return zero
	}
	return value
}

// refine lets the service's own words replace ours; ours move to the trace, so
// that address and status are not lost.
func (r refusal) refine(f *job.Failure) {
	if r.Type != "" {
		f.Type = r.Type
	}
	if r.Message != "" {
		f.Trace, f.Message = f.Message+"\n", r.Message
	}
	f.Answer.Retryable = r.Retryable
	if code := retry.Code(r.Code); code.Valid() {
		f.Answer.Code = code
	} else {
		f.Message += fmt.Sprintf(" (code %q)", r.Code)
	}
	var details bytes.Buffer
	if len(r.Details) > 0 && json.Indent(&details, r.Details, "", "  ") == nil {
		f.Trace += details.String()
	}
}

// excerpt is the beginning of a body on one line, or nothing when the body is
// no text.
func excerpt(body []byte) string {
	if !utf8.Valid(body) {
		return ""
	}
	text := strings.Join(strings.FieldsFunc(string(body), func(r rune) bool {
		return unicode.IsSpace(r) || unicode.IsControl(r)
	}), " ")
	return clip.Text(text, maxExcerpt)
}
