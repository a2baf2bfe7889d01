package db

import (
	"strings"

	"redrive/internal/job"
)

// Document is what can be searched of a job that failed, as it was at its newest
// failure and after redaction. The zero Document is that of a job that never
// failed: no text is found in it.
type Document struct{ ID, Type, Error, Payload, Meta string }

// maxSearched is how many bytes of each text can be searched.
const maxSearched = 32 << 10

// DocumentOf is what can be searched of a job, whose error is its newest one.
func DocumentOf(j job.Job) Document {
	failure := (&job.Failure{ErrorInfo: j.Error}).Error()
	return Document{searchable(j.ID), searchable(j.Type), searchable(failure), searchable(string(j.Payload)), searchable(string(j.Meta))}
}

// searchable is the part of a text that can be searched: its beginning, as
// characters. A NUL would end it for the index.
func searchable(s string) string {
	s = s[:min(len(s), maxSearched)]
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}
