package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
	"unicode"

	"golang.org/x/term"

	"redrive/internal/access"
	"redrive/internal/usage"
)

// Console is what a command has of the process in which it runs: what it reads from and
// writes to, and the signals that the process gets.
type Console struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer

	// Signals returns a channel of these signals, until it is released. A command that asks
	// for none is ended by them.
	Signals func(...os.Signal) (received <-chan os.Signal, release func())

	Version string // of the program
}

// until returns a context that ends with the first of these signals.
func (c Console) until(signals ...os.Signal) (ctx context.Context, release func()) {
	received, ignore := c.Signals(signals...)
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		select {
		case <-received:
			cancel()
		case <-ctx.Done():
		}
	}()

	return ctx, func() { ignore(); cancel() }
}

// progress returns a function that draws, on a terminal and a few times a second, how many of
// all jobs are done. It draws over one line of the standard error, which the caller
// clears in the end.
func (c Console) progress(doing string) func(done, all int) {
	drawn, live := time.Now(), isTerminal(c.Stderr)

	return func(done, all int) {
		if live && time.Since(drawn) > 200*time.Millisecond {
			drawn = time.Now()

			fmt.Fprintf(c.Stderr, "\r%s job %d of %d ", doing, done, all)
		}
	}
}

// percent returns a function that draws how much of something is done, on a terminal
// and once it has taken a second. The caller clears the line in the end.
func (c Console) percent(doing string) func(done, all int64) {
	began, live := time.Now(), isTerminal(c.Stderr)

	return func(done, all int64) {
		if live && all > 0 && time.Since(began) > time.Second {
			fmt.Fprintf(c.Stderr, "\r%s: %d %% ", doing, 100*done/all)
		}
	}
}

// waiting says on a terminal what the command waits for, once that has taken a second,
// until done is called. Further calls of done do nothing.
func (c Console) waiting(what string) (done func()) {
	if !isTerminal(c.Stderr) {
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
			c.clear()
		}
	})
}

// clear removes the line of progress.
func (c Console) clear() {
	if isTerminal(c.Stderr) {
		fmt.Fprint(c.Stderr, "\r\033[K")
	}
}

// isTerminal reports whether a stream is a terminal with a person in front of it.
func isTerminal(f any) bool {
	file, ok := f.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// printable is a text without control characters, which a terminal would obey.
func printable(s string) string {
	var b strings.Builder
	for _, r := range s {
		if unicode.IsPrint(r) {
			b.WriteRune(r)
		} else {
			b.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
		}
	}

	return b.String()
}

// askPassword reads a password twice from a terminal that does not show it, or
// once from the first line of the standard input. A password is never an argument:
// every user of the machine can see those.
func askPassword(c Console, name string) (string, error) {
	file, ok := c.Stdin.(*os.File)
	if !ok || !isTerminal(file) {
		line, err := bufio.NewReader(io.LimitReader(c.Stdin, 4096)).ReadString('\n')
		if errors.Is(err, io.EOF) {
			err = nil
		}

		return checkedPassword(strings.TrimRight(line, "\r\n"), err)
	}

	first, err := askHidden(c, file, "Password for "+name+": ")
	if err != nil {
		return "", err
	}

	again, err := askHidden(c, file, "Once more: ")
	if err == nil && first != again {
		err = usage.Errorf("the two passwords differ; nothing was changed")
	}

	return first, err
}

// askHidden asks for a password at a terminal, which does not show what is typed.
func askHidden(c Console, terminal *os.File, prompt string) (string, error) {
	fmt.Fprint(c.Stderr, prompt)

	text, err := term.ReadPassword(int(terminal.Fd()))

	fmt.Fprintln(c.Stderr)

	return checkedPassword(string(text), err)
}

// checkedPassword returns a password as it was read, or why it cannot be one. The
// hash checks it again; here it is refused before anything is opened.
func checkedPassword(password string, err error) (string, error) {
	if err != nil {
		return "", fmt.Errorf("read the password: %w", err)
	}

	if err := access.CheckPassword(password); err != nil {
		return "", usage.Of(err)
	}

	return password, nil
}

// interrupts returns the signals that end a command. The context ends with the
// first one: it is for the start, before the app is attended with the signals.
func (c Console) interrupts() (ctx context.Context, signals <-chan os.Signal, release func()) {
	signals, ignore := c.Signals(syscall.SIGINT, syscall.SIGTERM)
	ctx, cancel := c.until(syscall.SIGINT, syscall.SIGTERM)
	return ctx, signals, func() { ignore(); cancel() }
}

// newLog returns a log that shows what has this level or a higher one, as text or
// as JSON.
func newLog(w io.Writer, level, format string) (*slog.Logger, error) {
	var least slog.Level
	if err := least.UnmarshalText([]byte(level)); err != nil {
		return nil, usage.Of(err)
	}

	options := &slog.HandlerOptions{Level: least}

	// A password is hidden in the values before a line is made of them. In the line, it
	// could also be a number, or a part of the syntax.
	if h, ok := w.(*hider); ok {
		w, options.ReplaceAttr = h.to, h.attribute
	}

	if format == "json" {
		return slog.New(slog.NewJSONHandler(w, options)), nil
	}

	return slog.New(slog.NewTextHandler(w, options)), nil
}
