package audit

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"redrive/internal/invalid"
	"redrive/internal/wire"
)

// Reveal is the action of who looked at what is redacted. Others see such
// entries only if they may manage.
const Reveal = "job.reveal"

// Export is the action of who took a list away as a file.
const Export = "export"

// Filter selects entries of the audit log. Empty fields select everything.
type Filter struct {
	Actor   string // exact
	Action  string // exact, or a prefix as "job.*"
	Subject string // exact
	From    time.Time
	To      time.Time // until before
	Reveals string    // of the entries about reveals, only those of this actor
}

// String writes what was asked for as the audit log keeps it.
func (f Filter) String() string {
	var all []string
	for _, part := range []struct{ name, value string }{
		{"actor", f.Actor}, {"action", f.Action}, {"subject", f.Subject}, {"from", wire.FormatTime(f.From)}, {"to", wire.FormatTime(f.To)},
	} {
		if part.value != "" {
			all = append(all, part.name+":"+part.value)
		}
	}
	return strings.Join(all, " ")
}

// Zero reports whether nobody asked for less than everything.
func (f Filter) Zero() bool {
	f.Reveals = ""
	return f == Filter{}
}

// maxAuditText bounds what entries are looked for by, in bytes.
const maxAuditText = 255

// Check returns a *invalid.Error for the first field that nothing can match.
func (f Filter) Check() error {
	for _, text := range []struct{ field, value string }{{"actor", f.Actor}, {"action", f.Action}, {"subject", f.Subject}} {
		if len(text.value) > maxAuditText || !utf8.ValidString(text.value) {
			return &invalid.Error{Field: text.field, Problem: fmt.Sprintf("must be valid UTF-8 of at most %d bytes", maxAuditText)}
		}
	}
	if !f.From.IsZero() && !f.To.IsZero() && !f.From.Before(f.To) {
		return &invalid.Error{Field: "to", Problem: "is not after from"}
	}
	return nil
}

// List is one page of the audit log, newest first.
type List struct {
	Entries []Entry
	Next    int64 // the entry after which the next page begins; 0 on the last page
}

// Broken says where the audit log was changed by somebody else.
type Broken struct {
	Seq     int64 // the first entry that does not fit
	Problem string
}

func (e *Broken) Error() string {
	return fmt.Sprintf("entry %d of the audit log %s", e.Seq, e.Problem)
}
