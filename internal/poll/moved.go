package poll

import (
	"context"
	"fmt"
)

// movedError is the error of a source whose URL names another address than the one that its
// stored jobs came from.
type movedError struct{ earlier, address string }

// Error says what is wrong, and what a user can do about it.
func (e *movedError) Error() string {
	return fmt.Sprintf("its jobs are from %s, and its URL now names %s. Attach what is there under another name, or name the old place "+
		"in the URL again. If it is the same queue at another address, add to the source: moved_from: %q", e.earlier, e.address, e.earlier)
}

// locate compares the address of the source with the one that its stored jobs came from. If it is
// another one, the error is a *movedError, and the source must be neither read nor written to. It
// compares only once, because the address does not change while the source is attached.
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

// moved reports whether the last round found that the address is another one (see locate).
func (a *attached) moved() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.health.Moved
}
