package poll

import (
	"redrive/internal/clip"
	"redrive/internal/errortext"
	"redrive/internal/job"
	"redrive/internal/source"
)

// understand finds the class, the message and the trace in what a record says about its error and
// about earlier ones. A column of a source can have anything that a language prints, so it is read
// like the output of a program.
func understand(r *source.Record) {
	r.Error, r.Trace = understood(r.Error, r.Trace)
	for i, f := range r.History {
		r.History[i].Error, r.History[i].Trace = understood(f.Error, f.Trace)
	}
}

// understood is understand for a single error.
func understood(e job.ErrorInfo, trace string) (job.ErrorInfo, string) {
	said := errortext.Fields(e.Type, e.Message, trace)
	e.Type, e.Message = said.Class, said.Message
	return e, said.Trace
}

// hideIn hides the secrets in what a record says about its failures, and cuts these texts, as for
// the output of a handler. It leaves what a replay needs, such as the payload, as it is.
func (a *attached) hideIn(r *source.Record) {
	hide := func(e *job.ErrorInfo, trace *string) {
		e.Type, e.Message = a.keptText(e.Type, job.MaxType), a.keptText(e.Message, job.MaxErrorMessage)
		*trace = a.keptText(*trace, job.MaxTrace)
	}

	r.Type = clip.Text(r.Type, job.MaxType)
	hide(&r.Error, &r.Trace)

	r.History = r.History[max(0, len(r.History)-maxFailures):]
	for i := range r.History {
		hide(&r.History[i].Error, &r.History[i].Trace)
	}

	r.Warnings = r.Warnings[:min(len(r.Warnings), maxWarnings)]
	for i := range r.Warnings {
		r.Warnings[i] = a.keptText(r.Warnings[i], maxSentence)
	}
}
