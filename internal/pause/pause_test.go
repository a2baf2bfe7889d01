package pause_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"redrive/internal/pause"
)

func TestFor_EndsWithItsTimeOrItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		if !pause.For(t.Context(), time.Minute) || !time.Now().Equal(begun.Add(time.Minute)) {
			t.Errorf("a minute is over after %v", time.Since(begun))
		}

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		begun = time.Now()
		if pause.For(ctx, time.Hour) || !time.Now().Equal(begun.Add(time.Second)) {
			t.Errorf("the pause outlived its context: %v", time.Since(begun))
		}
	})
}
