package poll

import (
	"context"
	"fmt"
)

// movedError says that a source is not where its jobs are from.
type movedError struct{ earlier, address string }

// Error says also what can be done.
func (e *movedError) Error() string {
	return fmt.Sprintf("its jobs are from %s, and its URL now names %s. Attach what is there under another name, or name the old place "+
		"in the URL again. If it is the same queue at another address, add to the source: moved_from: %q", e.earlier, e.address, e.earlier)
}

// locate compares the address of the source with the one that its jobs are from. Nothing is
// read there before, and nothing is asked for.
func (a *attached) locate(ctx context.Context) error {
	if a.located || a.Address == "" {
		return nil
	}

	earlier, err := a.records.Locate(ctx, a.Name, a.Address, a.MovedFrom)
	if err != nil {
		return err
	}

	if earlier != "" {
		return &movedError{earlier, a.Address}
	}

	a.located = true

	return nil
}

// moved reports whether the source is not where its jobs are from.
func (a *attached) moved() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.health.Moved
}
