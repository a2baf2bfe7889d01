package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"
	"unicode"

	"golang.org/x/term"

	"redrive/internal/access"
)

// console is what a command reads from and writes to.
type console struct {
	stdin          io.Reader
	stdout, stderr io.Writer
}

// progress returns a function that draws, a few times a second, how many of all
// jobs are done. It draws over one line of the standard error, which the caller
// clears in the end.
func (c console) progress(doing string) func(done, all int) {
	drawn := time.Now()
	return func(done, all int) {
		if time.Since(drawn) > 200*time.Millisecond {
			drawn = time.Now()
			fmt.Fprintf(c.stderr, "\r%s job %d of %d ", doing, done, all)
		}
	}
}

// percent returns a function that draws how much of something is done, on a terminal
// and once it has taken a second. The caller clears the line in the end.
func (c console) percent(doing string) func(done, all int64) {
	began, live := time.Now(), isTerminal(c.stderr)
	return func(done, all int64) {
		if live && all > 0 && time.Since(began) > time.Second {
			fmt.Fprintf(c.stderr, "\r%s: %d %% ", doing, 100*done/all)
		}
	}
}

// waiting says on a terminal what the command waits for, once that has taken a second,
// until done is called.
func (c console) waiting(what string) (done func()) {
	if !isTerminal(c.stderr) {
		return func() {}
	}
	said := make(chan struct{})
	late := time.AfterFunc(time.Second, func() {
		fmt.Fprintf(c.stderr, "\r%s ", what)
		close(said)
	})
	return func() {
		if !late.Stop() {
			<-said
			c.clear()
		}
	}
}

// clear removes the line of progress.
func (c console) clear() {
	if isTerminal(c.stderr) {
		fmt.Fprint(c.stderr, "\r\033[K")
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
func askPassword(c console, name string) (string, error) {
	file, ok := c.stdin.(*os.File)
	if !ok || !isTerminal(file) {
		line, err := bufio.NewReader(io.LimitReader(c.stdin, 4096)).ReadString('\n')
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
		err = usage("the two passwords differ; nothing was changed")
	}
	return first, err
}

// askHidden asks for a password at a terminal, which does not show what is typed.
func askHidden(c console, terminal *os.File, prompt string) (string, error) {
	fmt.Fprint(c.stderr, prompt)
	text, err := term.ReadPassword(int(terminal.Fd()))
	fmt.Fprintln(c.stderr)
	return checkedPassword(string(text), err)
}

// checkedPassword returns a password as it was read, or why it cannot be one. The
// hash checks it again; here it is refused before anything is opened.
func checkedPassword(password string, err error) (string, error) {
	if err != nil {
		return "", fmt.Errorf("read the password: %w", err)
	}
	if err := access.CheckPassword(password); err != nil {
		return "", usageError{err}
	}
	return password, nil
}
