package console

import (
	"bytes"
	"fmt"
	"os"
	"testing"
	"testing/synctest"
	"time"
)

// onTerminal is a console whose standard error is a terminal.
func onTerminal(t *testing.T) Console {
	t.Helper()
	terminal, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil || !IsTerminal(terminal) {
		t.Skipf("there are no terminals: %v", err)
	}
	t.Cleanup(func() { terminal.Close() })
	return Console{Stderr: terminal}
}

// What is drawn over one line is for a person: a file or a log gets none of it.
func TestConsole_DrawsOnTerminalsOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		c := Console{Stderr: &out}
		progress, percent, done := c.Progress("Writing"), c.Percent("Copying"), c.Waiting("sending")
		steps := c.Steps()
		time.Sleep(2 * time.Second)
		progress(1, 2)
		percent(1, 2)
		steps("Copying", 1, 2)
		done()
		c.Clear()
		if out.Len() > 0 {
			t.Errorf("%q was drawn", out.String())
		}
	})
}

// A command can stop waiting before anything is said, after that, and more than once.
func TestWaiting_EndsHoweverOften(t *testing.T) {
	for _, after := range []time.Duration{0, 2 * time.Second} {
		t.Run(fmt.Sprint(after), func(t *testing.T) {
			c := onTerminal(t)
			synctest.Test(t, func(t *testing.T) {
				done := c.Waiting("sending")
				time.Sleep(after)
				done()
				done()
			})
		})
	}
}

// What an earlier run had done says nothing of the pace of this one.
func TestSteps_SayHowLongTheRestTakes(t *testing.T) {
	for _, test := range []struct {
		took       time.Duration
		done, rest int64
		want       string
	}{
		{took: time.Minute, done: 0, rest: 100, want: ""},
		{took: time.Millisecond, done: 50, rest: 100, want: ""},
		{took: time.Minute, done: 50, rest: 100, want: ", about 2m0s left"},
		{took: 10 * time.Second, done: 100, rest: 0, want: ", about 0s left"},
	} {
		if got := remaining(test.took, test.done, test.rest); got != test.want {
			t.Errorf("after %v, with %d done and %d left: %q, want %q", test.took, test.done, test.rest, got, test.want)
		}
	}
}
