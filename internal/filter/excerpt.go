package filter

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Texts are the texts of a job in which a filter looks for what it wants.
type Texts struct{ ID, Type, Error, Payload, Meta string }

// Excerpt is the part of a text in which something was found.
type Excerpt struct {
	In                   string // "error", "payload", "type", "id" or "meta"
	Before, Match, After string
	Cut, CutAfter        bool // there is more before, and after
}

// Runes around a match: a reader sees the match on one line, with what leads to it.
const (
	before     = 12
	wholeStart = 20 // a match that begins before this is shown with all that precedes it
	after      = 160
)

// Excerpts shows what a filter looks for in the texts of a job: the first match in
// each of the texts, in which the filter's own words come as they are written there.
func (f Filter) Excerpts(t Texts) (all []Excerpt) {
	anywhere := pattern(f.Text)
	for _, place := range []struct {
		in, text string
		wanted   *regexp.Regexp
	}{
		{"error", t.Error, pattern(f.Error)}, {"payload", t.Payload, pattern(f.Payload)}, {"meta", t.Meta, pattern(f.Meta)},
		{"type", t.Type, nil}, {"id", t.ID, nil},
	} {
		for _, wanted := range []*regexp.Regexp{place.wanted, anywhere} {
			from, to := locate(place.text, wanted)
			if to > from {
				all = append(all, excerpt(place.in, place.text, from, to))
				break
			}
		}
	}

	return all
}

// pattern matches what is wanted in a text in lower case. White space stands for any other,
// as in the index. It is nil where nothing is wanted.
func pattern(wanted string) *regexp.Regexp {
	words := strings.Fields(strings.ToLower(wanted))
	if len(words) == 0 {
		return nil
	}

	for i, word := range words {
		words[i] = regexp.QuoteMeta(word)
	}

	return regexp.MustCompile(strings.Join(words, `[\s\v\p{Z}\x{85}]+`)) // each word is quoted
}

// locate is where a text has what is wanted for the first time, case ignored.
func locate(text string, wanted *regexp.Regexp) (from, to int) {
	if wanted == nil {
		return 0, 0
	}

	at := wanted.FindStringIndex(strings.ToLower(text))
	if at == nil {
		return 0, 0
	}

	return unlowered(text, at[0]), unlowered(text, at[1])
}

// unlowered is the place in a text of a place in its lower case, whose letters may
// have other lengths.
func unlowered(text string, at int) int {
	for i, r := range text {
		if at <= 0 {
			return i
		}

		at -= utf8.RuneLen(unicode.ToLower(r))
	}

	return len(text)
}

// excerpt is the surroundings of a match in a text.
func excerpt(in, text string, from, to int) Excerpt {
	start, end := 0, to
	if utf8.RuneCountInString(text[:from]) > wholeStart {
		start = from
		for utf8.RuneCountInString(text[start:from]) < before {
			_, n := utf8.DecodeLastRuneInString(text[:start])
			start -= n
		}
	}

	for n := 0; n < after && end < len(text); n++ {
		_, size := utf8.DecodeRuneInString(text[end:])
		end += size
	}

	return Excerpt{In: in, Before: text[start:from], Match: text[from:to], After: text[to:end], Cut: start > 0, CutAfter: end < len(text)}
}
