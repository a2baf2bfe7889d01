package fault_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"redrive/internal/fault"
)

func TestInInput_TellsACallersFaultFromTheDatabases(t *testing.T) {
	for err, want := range map[error]bool{
		nil:                                    false,
		errors.New("too long"):                 true,
		fmt.Errorf("write: %w", fault.ErrBusy): false,
		fmt.Errorf("write: %w", fault.ErrStarved):             false,
		fmt.Errorf("write: %w", fault.ErrOverloaded):          false,
		fmt.Errorf("write: %w", fault.ErrStorageFull):         false,
		fmt.Errorf("write: %w", fault.ErrReadOnly):            false,
		fmt.Errorf("write: %w", fault.ErrUnsafe):              false,
		fmt.Errorf("write: %w", fault.ErrBroken):              false,
		fmt.Errorf("write: %w", fault.ErrCorrupt):             false,
		fmt.Errorf("write: %w", context.DeadlineExceeded):     false,
		fmt.Errorf("write: %w", context.Canceled):             false,
		errors.Join(errors.New("too long"), context.Canceled): false,
	} {
		if got := fault.InInput(err); got != want {
			t.Errorf("InInput(%v) is %t, want %t", err, got, want)
		}
	}
}

func TestKinds_SayTheirOwnReason(t *testing.T) {
	if !errors.Is(fault.ErrStarved, fault.ErrBusy) || !errors.Is(fault.ErrOverloaded, fault.ErrBusy) || !errors.Is(fault.ErrCorrupt, fault.ErrBroken) {
		t.Error("a kind is none of those that it belongs to")
	}
	if fault.ErrStarved.Error() != "the database lacks memory or file descriptors" {
		t.Errorf("ErrStarved says %q", fault.ErrStarved)
	}
}
