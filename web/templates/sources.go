package templates

import (
	"slices"
	"strconv"
	"strings"

	"github.com/a-h/templ"

	"redrive/internal/clip"
	"redrive/internal/source"
	"redrive/web/templates/format"
	"redrive/web/templates/link"
)

// Outdated are the sources of which nothing new is known: those that do not answer, that
// are not used, and whose answers cannot be kept.
func Outdated(all []source.Health) []source.Health {
	return slices.DeleteFunc(slices.Clone(all), func(h source.Health) bool { return h.Problem == "" })
}

// outdatedElsewhere are the outdated sources that the page is not about.
func (f Frame) outdatedElsewhere() []source.Health {
	return slices.DeleteFunc(slices.Clone(f.Outdated), func(h source.Health) bool { return h.Name == f.AboutSource })
}

// maxOutdated is how many outdated sources the banner of every page names.
const maxOutdated = 4

// maxProblem is how much of an error the banner of every page has.
const maxProblem = 200

// WhatIsWrong says what is wrong with an outdated source, as the beginning of a sentence.
func WhatIsWrong(h source.Health) string {
	switch {
	case h.Moved:
		return "The URL of " + h.Name + " names another place than the one that its jobs are from"
	case h.Own:
		return "Redrive cannot keep what " + h.Name + " says"
	}

	return h.Name + " does not answer"
}

// whatIsWrongWith says the same of several sources.
func whatIsWrongWith(all []source.Health) string {
	what := " are out of date"
	if !slices.ContainsFunc(all, func(h source.Health) bool { return h.Moved || h.Own }) {
		what = " do not answer"
	}

	return format.Counted(len(all), "source", "sources") + what
}

// listOfOutdated names the first of several outdated sources in a text for Say.
func listOfOutdated(all []source.Health) (text string, args []any) {
	named := all[:min(len(all), maxOutdated)]
	parts := make([]string, len(named))
	for i, h := range named {
		parts[i] = "%v since %v"

		args = append(args, h.Name, h.Since)
	}

	text = strings.Join(parts, ", ")
	if more := len(all) - len(named); more > 0 {
		text += " and " + format.Counted(more, "other", "others")
	}

	return text, args
}

// sinceWhen follows what is wrong with a source, with the time since when it is.
func sinceWhen(h source.Health) string {
	if h.Moved || h.Own {
		return ", since %v"
	}
	return " since %v"
}

// briefProblem is why a source is outdated, as far as the banner of every page says it: that
// of a source with another place takes several sentences, which its page has.
func briefProblem(h source.Health) string {
	if h.Moved {
		return ""
	}
	return format.Visible(clip.Text(h.Problem, maxProblem))
}

// pageOfOutdated says more of outdated sources than a banner can.
func pageOfOutdated(all []source.Health) (to templ.SafeURL, word string) {
	if len(all) == 1 {
		return link.Source(all[0].Name), "Source"
	}
	return link.Sources(), "Sources"
}

// incomplete says why there can be more dead letters than the known ones.
func incomplete(outdated []source.Health) string {
	if len(outdated) == 1 {
		return "Incomplete: " + outdated[0].Name + " may have more."
	}
	return "Incomplete: " + strconv.Itoa(len(outdated)) + " sources may have more."
}
