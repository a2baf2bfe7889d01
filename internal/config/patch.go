package config

import (
	"errors"
	"fmt"
	"math"
	"time"

	"redrive/internal/invalid"
	"redrive/internal/retry"
	"redrive/internal/wire"
)

// expired reads what becomes of a job whose time to live is over.
func expired(v value) (retry.Action, error) {
	ends := func(a retry.Action) bool { return a == retry.DeadLetter || a == retry.Discard }
	return word(ends, "unknown; use dead_letter or discard")(v)
}

// policy reads a partial policy, or the name of a whole one, by the rules of package
// job. It checks each field on its own: what places say together is checked later. With
// an error it returns what that check needs.
func (v value) policy() (retry.Patch, error) {
	data, err := v.json()
	if err != nil {
		return anyIntervals(), err
	}

	patch, err := wire.DecodePatch(data)
	wrong := split(err)
	if n := patch.MaxAttempts; n != nil && *n == 0 {
		wrong = append(wrong, invalid.Errorf("max_attempts",
			"0 is not possible, because every job runs at least once; write 1 to run it once and never again"))
	}

	wrong = append(wrong, retry.Default().With(anyIntervals()).With(patch).Problems()...)
	if len(wrong) == 0 {
		return patch, nil
	}

	var all []error
	for _, err := range wrong {
		if field := fieldOf(err); field == "policy" { // it is about the policy itself
			all = append(all, v.wrong("%s", problem(err)))
		} else {
			all = append(all, v.file.wrong(join(v.path, field), problem(err)))
		}
	}

	return withoutWrongFields(patch, wrong), errors.Join(all...)
}

// anyIntervals are the widest possible intervals. They are assumed after an error, so that
// no second error follows from it.
func anyIntervals() retry.Patch {
	return retry.Patch{InitialInterval: new(time.Duration(1)), MaxInterval: new(time.Duration(math.MaxInt64))}
}

// withoutWrongFields is what is left of a policy with errors for the checks of other places: the
// policy on which it is based, and its intervals, each as wide as possible if it is wrong.
func withoutWrongFields(patch retry.Patch, wrong []error) retry.Patch {
	left := retry.Patch{Use: patch.Use, InitialInterval: patch.InitialInterval, MaxInterval: patch.MaxInterval}
	unknown := anyIntervals()
	for _, err := range wrong {
		switch fieldOf(err) {
		case "initial_interval":
			left.InitialInterval = unknown.InitialInterval
		case "max_interval":
			left.MaxInterval = unknown.MaxInterval
		case "use", "policy":
			left = unknown
		}
	}

	return left
}

// split lists the errors that are joined in another.
func split(err error) (all []error) {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, err := range joined.Unwrap() {
			all = append(all, split(err)...)
		}
		return all
	}

	if err == nil {
		return nil
	}

	return []error{err}
}

// problem is an error about a field without the field's name.
func problem(err error) string {
	if wrong, ok := errors.AsType[*invalid.Error](err); ok {
		return wrong.Problem
	}
	return fmt.Sprint(err)
}

// fieldOf names the field that an error is about, or nothing.
func fieldOf(err error) string {
	if wrong, ok := errors.AsType[*invalid.Error](err); ok {
		return wrong.Field
	}
	return ""
}
