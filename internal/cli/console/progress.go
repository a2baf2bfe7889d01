package console

import (
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/term"
)

// Progress returns a function that draws, on a terminal and a few times a second, how many of
// all jobs are done. It draws over one line of the standard error, which the caller
// clears in the end.
func (c Console) Progress(doing string) func(done, all int) {
	drawn, live := time.Now(), IsTerminal(c.Stderr)

	return func(done, all int) {
		if live && time.Since(drawn) > 200*time.Millisecond {
			drawn = time.Now()

			fmt.Fprintf(c.Stderr, "\r%s job %d of %d ", doing, done, all)
		}
	}
}

// Percent returns a function that draws how much of something is done, on a terminal
// and once it has taken a second. The caller clears the line in the end.
func (c Console) Percent(doing string) func(done, all int64) {
	began, live := time.Now(), IsTerminal(c.Stderr)

	return func(done, all int64) {
		if live && all > 0 && time.Since(began) > time.Second {
			fmt.Fprintf(c.Stderr, "\r%s: %d %% ", doing, 100*done/all)
		}
	}
}

// Steps returns a function that draws, on a terminal and a few times a second, how much of a step
// is done and how long the rest of it will take at this pace. The caller clears the line in the end.
func (c Console) Steps() func(doing string, done, all int64) {
	live := IsTerminal(c.Stderr)
	var step string
	var began, drawn time.Time
	var first int64

	return func(doing string, done, all int64) {
		now := time.Now()
		if doing != step {
			step, began, first = doing, now, done
		}

		if !live || all == 0 || now.Sub(drawn) < 200*time.Millisecond {
			return
		}

		drawn = now

		c.Clear()
		fmt.Fprintf(c.Stderr, "%s: row %d of %d, %d %%%s ", doing, done, all, 100*done/all, remaining(now.Sub(began), done-first, all-done))
	}
}

// remaining says how long the rest takes at the pace of what was done.
func remaining(took time.Duration, done, rest int64) string {
	if done <= 0 || took < time.Second {
		return ""
	}

	left := time.Duration(float64(took) / float64(done) * float64(rest))

	return fmt.Sprintf(", about %v left", left.Round(time.Second))
}

// Waiting says on a terminal what the command waits for, once that has taken a second,
// until done is called. Further calls of done do nothing.
func (c Console) Waiting(what string) (done func()) {
	if !IsTerminal(c.Stderr) {
		return func() {}
	}

	said := make(chan struct{})
	late := time.AfterFunc(time.Second, func() {
		fmt.Fprintf(c.Stderr, "\r%s ", what)
		close(said)
	})

	return sync.OnceFunc(func() {
		if !late.Stop() {
			<-said
			c.Clear()
		}
	})
}

// Clear removes the line of progress.
func (c Console) Clear() {
	if IsTerminal(c.Stderr) {
		fmt.Fprint(c.Stderr, "\r\033[K")
	}
}

// IsTerminal reports whether a stream is a terminal with a person in front of it.
func IsTerminal(f any) bool {
	file, ok := f.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}
