package console

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"redrive/internal/access"
	"redrive/internal/usage"
)

// AskPassword reads a password twice from a terminal that does not show it, or
// once from the first line of the standard input. A password is never an argument:
// every user of the machine can see those.
func (c Console) AskPassword(name string) (string, error) {
	file, ok := c.Stdin.(*os.File)
	if !ok || !IsTerminal(file) {
		line, err := bufio.NewReader(io.LimitReader(c.Stdin, 4096)).ReadString('\n')
		if errors.Is(err, io.EOF) {
			err = nil
		}

		return checkedPassword(strings.TrimRight(line, "\r\n"), err)
	}

	first, err := c.askHidden(file, "Password for "+name+": ")
	if err != nil {
		return "", err
	}

	again, err := c.askHidden(file, "Once more: ")
	if err == nil && first != again {
		err = usage.Errorf("the two passwords differ; nothing was changed")
	}

	return first, err
}

// askHidden asks for a password at a terminal, which does not show what is typed.
func (c Console) askHidden(terminal *os.File, prompt string) (string, error) {
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
