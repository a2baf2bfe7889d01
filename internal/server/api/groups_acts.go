package api

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"redrive/internal/apitype"
	"redrive/internal/apitype/work"
	"redrive/internal/clip"
	"redrive/internal/failures"
	"redrive/internal/filter"
	"redrive/internal/invalid"
	"redrive/internal/job"
	"redrive/internal/server/web"
	"redrive/internal/wire"
)

// groupActs are what people decide about error groups.
func (a *API) groupActs() []Act {
	acts := []Act{{
		Path: "/failures/:fingerprint/note", Says: "Writes a note on an error group", Request: work.NoteRequest{},
		Answer: work.GroupAnswer{}, Do: a.noteGroup,
	}}
	for _, act := range []struct {
		name, says, many string
		one, several     any // what a program sends
	}{
		{"resolve", "Resolves an error group", "Resolves error groups", apitype.Nothing{}, work.GroupsRequest{}},
		{"ignore", "Ignores an error group", "Ignores error groups", work.IgnoreRequest{}, work.IgnoreGroupsRequest{}},
		{"reopen", "Reopens an error group", "Reopens error groups", apitype.Nothing{}, work.GroupsRequest{}},
	} {
		acts = append(acts,
			Act{
				Path: "/failures/" + act.name, Says: act.many, Request: act.several,
				Answer: work.GroupsAnswer{}, Do: a.decideGroups,
			},
			Act{
				Path: "/failures/:fingerprint/" + act.name, Says: act.says, Request: act.one,
				Answer: work.GroupAnswer{}, Do: a.decideGroup,
			},
		)
	}

	return acts
}

// groupOutcome leads back to the page of the group.
func groupOutcome(g failures.Group, text string) Outcome {
	return Outcome{Says: work.GroupAnswer{Group: groupOf(g)}, Text: text, Page: "/failures/" + url.PathEscape(g.Fingerprint)}
}

// noteGroup writes a note on the group that the address names.
func (a *API) noteGroup(c echo.Context) (Outcome, error) {
	note, err := readNote(c)
	if err != nil {
		return Outcome{}, err
	}

	note = strings.ReplaceAll(strings.TrimSpace(note), "\r\n", "\n")
	if len(note) > job.MaxNote {
		return Outcome{}, &invalid.Error{Field: "note", Problem: "is longer than " + strconv.Itoa(job.MaxNote) + " bytes"}
	}

	note = strings.ToValidUTF8(note, "\uFFFD")
	g, err := a.View.NoteGroup(c.Request().Context(), time.Now(), c.Param("fingerprint"), note, web.Actor(c))

	return groupOutcome(g, "Note saved"), err
}

// readNote reads a note. A program has to say it even when it is empty: a request
// without a body must not remove a note.
func readNote(c echo.Context) (note string, err error) {
	if web.IsForm(c) {
		err = web.ReadForm(c)
		return c.FormValue("note"), err
	}

	var in work.NoteRequest
	if err := readSmall(c, &in, nil); err != nil {
		return "", err
	}

	if in.Note == nil {
		return "", &invalid.Error{Field: "note", Problem: "is missing; send an empty text to remove the note"}
	}

	return *in.Note, nil
}

// decideGroups resolves, ignores or reopens all groups that the body names. A group
// that was removed meanwhile is left out of the answer.
func (a *API) decideGroups(c echo.Context) (Outcome, error) {
	now := time.Now()
	var named []string

	to, err := readDecision(c, now, &named)
	if err == nil {
		err = cmp.Or(to.Check(now), checkGroups(named))
	}

	if err != nil {
		return Outcome{}, err
	}

	// Each group is a transaction of its own. An error says how many were decided before.
	var all []failures.Group
	for _, fingerprint := range named {
		g, err := a.View.SetGroup(c.Request().Context(), now, fingerprint, to, web.Actor(c))
		if errors.Is(err, job.ErrNotFound) {
			continue
		}

		if err != nil {
			return Outcome{}, fmt.Errorf("%d of %d error groups are %s: %w", len(all), len(named), to.State, err)
		}

		all = append(all, g)
	}

	text := fmt.Sprintf("%d groups %s", len(all), decided(to.State))
	if len(all) == 1 {
		text = "1 group " + decided(to.State)
	}

	return Outcome{Says: work.GroupsAnswer{Groups: mapped(all, groupOf)}, Text: text, Page: "/failures"}, nil
}

// decided says what was done to groups that are now in a state.
func decided(s failures.State) string {
	if s == failures.Open {
		return "reopened"
	}
	return string(s)
}

// checkGroups returns an error unless the caller named groups, and not too many.
func checkGroups(named []string) error {
	switch {
	case len(named) == 0:
		return &invalid.Error{Field: "groups", Problem: "is missing: name at least one error group"}
	case len(named) > filter.MaxGroups:
		return &invalid.Error{Field: "groups", Problem: fmt.Sprintf("names %d error groups; name at most %d", len(named), filter.MaxGroups)}
	}

	return nil
}

// decideGroup resolves, ignores or reopens the group that the address names.
func (a *API) decideGroup(c echo.Context) (Outcome, error) {
	now := time.Now()

	to, err := readDecision(c, now, nil)
	if err == nil {
		err = to.Check(now)
	}

	if err != nil {
		return Outcome{}, err
	}

	g, err := a.View.SetGroup(c.Request().Context(), now, c.Param("fingerprint"), to, web.Actor(c))

	return groupOutcome(g, "Group "+decided(g.State)), err
}

// readDecision reads a decision, and the groups that it is about unless the address
// names one. Only ignoring takes more: until when, which is optional.
func readDecision(c echo.Context, now time.Time, named *[]string) (to failures.Decision, err error) {
	to.State = map[string]failures.State{
		"resolve": failures.Resolved, "reopen": failures.Open, "ignore": failures.Ignored,
	}[web.LastSegment(c.Path())]
	if !web.IsForm(c) {
		return to, readDecisionBody(c, now, &to, named)
	}

	if err := web.ReadForm(c); err != nil {
		return to, err
	}

	if named != nil {
		*named = c.Request().Form["group"]
	}

	if to.State == failures.Ignored {
		err = formPatience(&to, c.FormValue, now)
	}

	return to, err
}

// readDecisionBody is readDecision for a program.
func readDecisionBody(c echo.Context, now time.Time, to *failures.Decision, named *[]string) (err error) {
	var in work.IgnoreGroupsRequest
	patience := func(member, _ string, _ json.RawMessage) error { return checkPatience(member, in.IgnoreRequest) }

	// Which members a body may have depends on the act and on whether it names groups.
	ignores := to.State == failures.Ignored
	switch {
	case ignores && named != nil:
		err = readSmall(c, &in, patience)
	case ignores:
		err = readSmall(c, &in.IgnoreRequest, patience)
	case named != nil:
		err = readSmall(c, &in.GroupsRequest, nil)
	default:
		err = readNothing(c)
	}

	if err != nil {
		return err
	}

	if named != nil {
		*named = in.Groups
	}

	to.Until = momentOf(in.Until)
	if in.For != nil {
		to.Until = endOf(in.For, now).UTC()
	}

	if in.Failures != nil {
		to.More = *in.Failures
	}

	if in.FailuresAnHour != nil {
		to.Rate = *in.FailuresAnHour
	}

	return nil
}

// checkPatience checks a member that says until when a group is ignored.
func checkPatience(member string, in work.IgnoreRequest) error {
	switch member {
	case "until", "for":
		if in.Until != nil && in.For != nil {
			return errors.New("until and for cannot be used together; send one of them")
		}

		if in.For != nil {
			return longerThanZero(in.For)
		}
	case "failures":
		return checkFailureCount(*in.Failures)
	case "failures_an_hour":
		return checkFailureCount(*in.FailuresAnHour)
	}

	return nil
}

// checkFailureCount checks a number of failures.
func checkFailureCount(n int64) error {
	if n < 1 || n > failures.MaxPatience {
		return fmt.Errorf("must be between 1 and %d", failures.MaxPatience)
	}
	return nil
}

// formPatience reads a form in which one field says how to ignore the group and
// another one until when. The fields of the other choices are in the form as
// well and do not count.
func formPatience(to *failures.Decision, field func(string) string, now time.Time) (err error) {
	switch field("how") {
	case "", "always":
	case "for":
		to.Until, err = fromNow("for", field("for"), now)
	case "count":
		to.More, err = atLeastOne("count", field("count"))
	case "rate":
		to.Rate, err = atLeastOne("rate", field("rate"))
	default:
		err = &invalid.Error{Field: "how", Problem: "must be always, for, count or rate"}
	}

	return err
}

// fromNow is the end of a duration that begins now.
func fromNow(name, text string, now time.Time) (time.Time, error) {
	d, err := wire.ParseDuration(text)
	if err == nil && d <= 0 {
		err = errors.New("must be longer than zero")
	}

	if err != nil {
		return time.Time{}, &invalid.Error{Field: name, Problem: err.Error()}
	}

	return now.Add(d).UTC(), nil
}

// atLeastOne reads a number above zero.
func atLeastOne(name, text string) (int64, error) {
	n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if err != nil || n < 1 {
		return 0, &invalid.Error{Field: name, Problem: strconv.Quote(clip.Text(text, 64)) + " is not a whole number above zero"}
	}

	return n, nil
}
