package filter

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"

	"redrive/internal/clip"
	"redrive/internal/invalid"
	"redrive/internal/job"
	"redrive/internal/retry"
)

// Check returns a *invalid.Error for the first field that no job can match.
func (f Filter) Check() error {
	if err := f.checkEach(); err != nil || f.Sort != Next {
		return err
	}

	switch {
	case !f.waits():
		return invalid.Errorf("sort", "next sorts jobs that wait for their next run; add state:retryable or state:scheduled")
	case f.Searches():
		return invalid.Errorf("sort", "next cannot be combined with a text; text searches are sorted by enqueue time")
	}

	return nil
}

// checkEach checks every field on its own.
func (f Filter) checkEach() error {
	if f.Status != "" && !slices.Contains(job.Statuses(), f.Status) {
		var known []string
		for _, s := range job.Statuses() {
			known = append(known, string(s))
		}

		return invalid.Errorf("state", "%q is unknown; use %s", clip.Text(string(f.Status), 64), strings.Join(known, ", "))
	}

	known := retry.Reasons()
	if f.Reason != "" && !slices.Contains(known, f.Reason) {
		return invalid.Errorf("reason", "%q is unknown; use one of %q", clip.Text(string(f.Reason), 64), known)
	}

	if f.Queue != "" {
		if err := CheckQueue(f.Queue); err != nil {
			return err
		}
	}

	if err := cmp.Or(CheckSource(f.Source), CheckPattern("type", f.Type), CheckPattern("class", f.Class)); err != nil {
		return err
	}

	// Texts are searched for in an index, which limits what can be found.
	for _, name := range []string{"error", "payload", "meta", "text"} {
		if text := f.Value(name); text != "" {
			if err := checkSearch(name, text); err != nil {
				return err
			}
		}
	}

	return f.checkRest()
}

// checkRest checks the fields that have a form of their own.
func (f Filter) checkRest() error {
	notHex := func(r rune) bool { return !strings.ContainsRune("0123456789abcdef-", r) }
	notPlain := func(r rune) bool { return r <= 0x20 || r >= 0x7f }
	switch {
	case f.ID != "" && (len(f.ID) < MinID || len(f.ID) > 36 || strings.ContainsFunc(f.ID, notHex)):
		return invalid.Errorf("id", "%q is not the beginning of a job's id: %d to 36 characters of it", clip.Text(f.ID, 64), MinID)
	case slices.ContainsFunc(f.Groups(), func(g string) bool { return g == "" || len(g) > 64 || strings.ContainsFunc(g, notPlain) }):
		return invalid.Errorf("group", "%q is not the fingerprint of an error group; separate several by commas", clip.Text(f.Group, 64))
	case len(f.Groups()) > MaxGroups:
		return invalid.Errorf("group", "names %d error groups; name at most %d", len(f.Groups()), MaxGroups)
	// Only with many error groups can the text of a filter become too long to be read back.
	case f.Group != "" && len(f.String()) > maxQuery:
		return invalid.Errorf("group", "makes the filter longer than %d bytes; name fewer error groups", maxQuery)
	case !f.From.IsZero() && !f.To.IsZero() && !f.From.Before(f.To):
		return invalid.Errorf("to", "is not later than from, so no job can match")
	case !slices.Contains([]Sort{"", Newest, Oldest, Next}, f.Sort):
		return invalid.Errorf("sort", "%q is unknown; use newest, oldest or next", clip.Text(string(f.Sort), 64))
	}

	return nil
}

// CheckQueue returns a *invalid.Error unless s can name a queue, of Redrive's own or of a
// source's jobs.
func CheckQueue(s string) error {
	queue, source, foreign := strings.Cut(s, "@")
	if !foreign {
		return job.CheckQueue(s)
	}

	return cmp.Or(job.CheckQueue(queue), job.CheckQueue(source))
}

// CheckSource returns a *invalid.Error unless s can name a source, or is empty.
func CheckSource(s string) error {
	if s != "" && job.CheckQueue(s) != nil {
		return invalid.Errorf("source", "%q is not the name of a source", clip.Text(s, 64))
	}
	return nil
}

// CheckPattern refuses what is neither a type, of a job or of an error, nor a
// prefix of some, such as "email.*". Empty is right.
func CheckPattern(field, s string) error {
	switch {
	case s == "":
		return nil
	case strings.HasSuffix(s, "*") && !strings.HasSuffix(s, ".*"):
		return invalid.Errorf(field, "%q has a * in the wrong place; use a name, or a prefix up to a dot such as email.*", clip.Text(s, 64))
	case len(s) > job.MaxType || !utf8.ValidString(s):
		return invalid.Errorf(field, "%q is not a type, or a prefix of types such as http.*", clip.Text(s, 64))
	}

	return nil
}

// checkSearch refuses a text that cannot be looked for in the index of words.
func checkSearch(field, s string) error {
	if err := CheckText(field, s); err != nil {
		return err
	}

	// The index reads all white space as one blank, and none at either end.
	if utf8.RuneCountInString(clip.Line(s)) < MinSearch {
		return invalid.Errorf(field, "%q is too short to search for; use at least %d characters", s, MinSearch)
	}

	return nil
}

// CheckText refuses what no text contains that is searched.
func CheckText(field, s string) error {
	switch {
	case len(s) > maxSearch || !utf8.ValidString(s):
		return invalid.Errorf(field, "must be valid UTF-8 of at most %d bytes", maxSearch)
	case strings.ContainsRune(s, 0):
		return invalid.Errorf(field, "contains a NUL character, which cannot be searched for")
	}

	return nil
}
