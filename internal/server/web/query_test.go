package web

import (
	"errors"
	"net/url"
	"testing"

	"redrive/internal/invalid"
)

// Whatever is wrong with a filter, no caller gets a wider one.
func TestFilter_EveryErrorIsAboutAField(t *testing.T) {
	if f := fieldOf(errors.New("it broke")); f.Field != "q" || f.Problem != "it broke" {
		t.Errorf("%+v", f)
	}
	if f := fieldOf(&invalid.Error{Field: "queue", Problem: "is wrong"}); f.Field != "queue" {
		t.Errorf("%+v", f)
	}
}

func FuzzQuery(f *testing.F) {
	f.Add("state=active&queue=a&type=b.*&after=&error=x")
	f.Fuzz(func(t *testing.T, raw string) {
		values, err := url.ParseQuery(raw)
		if err != nil {
			return
		}
		filter, _, wrong := Query(values)
		if len(wrong) == 0 && filter.Check() != nil {
			t.Errorf("accepted %+v", filter)
		}
	})
}
