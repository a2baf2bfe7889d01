package failures_test

import (
	"testing"

	"redrive/internal/failures"
)

// The type of a filter of groups is a type or a prefix, as in the language of
// filters.
func TestGroupFilter_RefusesATypeThatNothingMatches(t *testing.T) {
	for typ, fits := range map[string]bool{"": true, "email.receipt": true, "email.*": true, "email*": false, "*": false} {
		if err := (failures.Filter{Type: typ}).Check(); (err == nil) != fits {
			t.Errorf("the type %q: %v", typ, err)
		}
	}
}
