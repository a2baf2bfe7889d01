package templates

import (
	"fmt"
	"math"
	"strings"
	"time"

	"redrive/internal/job"
	"redrive/internal/retention"
	"redrive/internal/stats"
	"redrive/web/templates/format"
)

// DeadLetterUsage is how full the dead-letter queue is, and what bounds it.
type DeadLetterUsage struct {
	retention.Usage
	retention.Limits
	Forecast retention.Forecast
}

// kept is how long a dead letter is kept; zero: forever.
func (r DeadLetterUsage) kept() time.Duration { return r.Ages[retention.DeadLetters] }

// leaving says how many dead letters will be removed soon for their age; empty: none.
func (r DeadLetterUsage) leaving() string {
	o := r.Forecast.Of(retention.DeadLetters)
	if o.Soon == 0 {
		return ""
	}

	return AtLeast(o, "dead letter", "dead letters") + " will be removed within 24 h"
}

// overCount says how many dead letters the next sweep will remove for their number;
// empty: none.
func (r DeadLetterUsage) overCount() string {
	o := r.Forecast.Of(retention.OverCount)
	if o.Soon == 0 {
		return ""
	}

	return format.UpperFirst(AtLeast(o, "dead letter", "dead letters")) + " will be removed by the next sweep"
}

// AtLeast says how many jobs will be removed soon.
func AtLeast(o retention.Outlook, one, many string) string {
	if o.More {
		return "more than " + format.Counted(o.Soon, one, many)
	}
	return format.Counted(o.Soon, one, many)
}

// Refused is a job whose dead letter was not accepted, and why.
type Refused struct {
	job.Job
	Problem string
}

// bounded reports whether anything ends the stay of a dead letter.
func (r DeadLetterUsage) bounded() bool { return r.Count > 0 || r.kept() > 0 }

// ofHowMany is how many dead letters are kept, behind how many there are.
func (r DeadLetterUsage) ofHowMany() string { return "of " + format.Number(r.Count) }

// share is how full it is.
func (r DeadLetterUsage) share() float64 { return r.Usage.Share(r.Limits) }

// warns reports whether a person should be warned that it fills up.
func (r DeadLetterUsage) warns() bool { return r.Count > 0 && r.share() >= retention.WarnShare }

// fillClass is the colour of the meter: quiet, a warning, and full.
func (r DeadLetterUsage) fillClass() string {
	switch {
	case r.share() >= 1:
		return "is-dead"
	case r.warns():
		return "is-warn"
	}

	return "is-pending"
}

// percentOf is a share in whole numbers; full is only what is full.
func percentOf(share float64) string { return fmt.Sprintf("%d %%", int(math.Floor(100*share))) }

// picture is the meter in words.
func (r DeadLetterUsage) picture() string {
	return "Dead-letter queue " + strings.TrimSuffix(percentOf(r.share()), " %") + " percent full, warns at 80 percent"
}

// age says how old the oldest dead letter is, and how old it may become.
func (r DeadLetterUsage) age(now time.Time) string { return KeptLine(r.Oldest, r.kept(), now) }

// KeptLine says how old the oldest of some jobs is, and for how long they are kept.
func KeptLine(oldest time.Time, kept time.Duration, now time.Time) string {
	var parts []string
	if !oldest.IsZero() {
		parts = append(parts, "Oldest: "+format.About(now.Sub(oldest))+" ago.")
	}

	if kept > 0 {
		parts = append(parts, "Kept for "+format.About(kept)+".")
	}

	return strings.Join(parts, " ")
}

// pruning says what happens to the dead letters that are too old or too many.
func (r DeadLetterUsage) pruning() string {
	var bounds []string
	if r.kept() > 0 {
		bounds = append(bounds, "older than "+format.About(r.kept()))
	}

	if r.Count > 0 {
		bounds = append(bounds, "beyond "+format.Number(r.Count))
	}

	return "Dead letters " + strings.Join(bounds, " or ") + " are removed, the oldest first, each with its job and history. " +
		"The newest one always stays." + AtSources(r.Usage)
}

// AtSources says that dead letters of sources are neither counted nor removed, as a
// sentence behind another one; empty when there are none.
func AtSources(u retention.Usage) string {
	switch u.AtSources {
	case 0:
		return ""
	case 1:
		return " One dead letter is still in its source. Redrive keeps it as long as it is there, and does not count it for this."
	}

	return fmt.Sprintf(" %s dead letters are still in their sources. "+
		"Redrive keeps them as long as they are there, and does not count them for this.",
		format.Number(u.AtSources))
}

// RefusedTitle says how many dead letters were refused.
func RefusedTitle(n int64) string {
	return format.Counted(n, "dead letter was refused", "dead letters were refused")
}

// RefusedText says why dead letters were refused, and that nothing is lost.
func RefusedText(refused []Refused) string {
	problems := map[string]bool{}
	for _, j := range refused {
		problems[j.Problem] = true
	}

	switch {
	case len(problems) > 1:
		return "Each says why. Every job is kept."
	case len(refused) == 0 || refused[0].Problem == "":
		return "Every job is kept."
	}

	return ProblemText(refused[0].Problem) + ". Every job is kept."
}

// ProblemText is why a dead letter was refused, as the beginning of a sentence.
// An address keeps its letters.
func ProblemText(problem string) string {
	s := strings.TrimRight(format.Visible(problem), ".")
	if strings.HasPrefix(s, "http") {
		return s
	}

	return format.UpperFirst(s)
}

// RecoveredText says what retries have saved.
func RecoveredText(t stats.Totals) string {
	if t.Requeued == 0 {
		return "No job has failed permanently."
	}
	return fmt.Sprintf("%s were retried so far.", format.Counted(t.Requeued, "failed attempt", "failed attempts"))
}
