package filter_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"redrive/internal/filter"
)

func TestExcerpts_ShowEachTextThatHasTheMatch(t *testing.T) {
	texts := filter.Texts{
		ID: "019ce22a-0000", Type: "email.receipt", Error: "smtp.Error: 451 for NOOR@example.org", Payload: `{"to":"noor@example.org"}`, Meta: `{}`,
	}
	got := filter.Filter{Text: "noor@"}.Excerpts(texts)
	want := []filter.Excerpt{
		{In: "error", Before: "smtp.Error: 451 for ", Match: "NOOR@", After: "example.org"},
		{In: "payload", Before: `{"to":"`, Match: "noor@", After: `example.org"}`},
	}
	if len(got) != 2 || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("got %+v, want %+v", got, want)
	}
	for in, f := range map[string]filter.Filter{
		"error": {Error: "451"}, "payload": {Payload: "to"}, "meta": {Meta: "{}"}, "type": {Text: "email.r"}, "id": {Text: "19CE22"},
	} {
		if got := f.Excerpts(texts); len(got) != 1 || got[0].In != in {
			t.Errorf("%v gives %+v, want an excerpt of %s", f, got, in)
		}
	}
	if got := (filter.Filter{Queue: "orders", Text: "nothing"}).Excerpts(texts); got != nil {
		t.Errorf("a text that no text has gives %+v", got)
	}
}

func TestExcerpts_KeepTheirLengthInALongText(t *testing.T) {
	e := filter.Filter{Text: "needle"}.Excerpts(filter.Texts{Payload: strings.Repeat("ä", 9000) + "Needle" + strings.Repeat("ö", 9000)})[0]
	if !e.Cut || !e.CutAfter || e.Match != "Needle" || utf8.RuneCountInString(e.Before) > 20 || utf8.RuneCountInString(e.After) > 200 {
		t.Errorf("the excerpt is %+v", e)
	}
}

// An excerpt is a part of its text, the match in it equals what was wanted but for
// case and white space, and no letter is cut in two.
func FuzzExcerpts(f *testing.F) {
	f.Add("the İstanbul office", "İSTAN")
	f.Add("Straße K (Kelvin) \u212a", "k")
	f.Add("\xff\xfebroken", "BROKEN")
	f.Add("duplicate key\r\n\v violates\u00a0it", "Key violates it")
	f.Fuzz(func(t *testing.T, text, wanted string) {
		if !utf8.ValidString(text) || !utf8.ValidString(wanted) {
			t.Skip("texts are made valid before they are searched")
		}
		found := filter.Filter{Text: wanted}.Excerpts(filter.Texts{Payload: text})
		if has := folded(wanted) != "" && strings.Contains(folded(text), folded(wanted)); has != (len(found) == 1) {
			t.Fatalf("%q in %q: %+v", wanted, text, found)
		}
		for _, e := range found {
			if !strings.Contains(text, e.Before+e.Match+e.After) || folded(e.Match) != folded(wanted) {
				t.Errorf("%q in %q: %+v", wanted, text, e)
			}
		}
	})
}

// folded is a text as the search compares it: in lower case, which is not Unicode's folding
// of case, and with one blank for all white space.
func folded(text string) string { return strings.ToLower(strings.Join(strings.Fields(text), " ")) }
