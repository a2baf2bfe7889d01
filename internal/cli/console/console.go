// Package console is what a command reads and writes: the streams and the signals of its
// process, as a [Console]. On the streams it prints tables and JSON, draws progress where
// someone watches, asks for passwords and writes a log.
//
// Two things hold for all that a command prints. No password of the command line is in it
// ([Console.Hiding], credentials.go), and what came from elsewhere has no character that a
// terminal would obey ([Printable]).
package console

import (
	"context"
	"io"
	"os"
	"slices"
	"strings"
	"syscall"
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

// Until returns a context that ends with the first of these signals.
func (c Console) Until(signals ...os.Signal) (ctx context.Context, release func()) {
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

// Interrupts returns the signals that end a command. The context ends with the
// first one: it is for the start, before the app is attended with the signals.
func (c Console) Interrupts() (ctx context.Context, signals <-chan os.Signal, release func()) {
	signals, ignore := c.Signals(syscall.SIGINT, syscall.SIGTERM)
	ctx, cancel := c.Until(syscall.SIGINT, syscall.SIGTERM)
	return ctx, signals, func() { ignore(); cancel() }
}

// Hiding is a console that prints no password of the command line and the environment.
// A password alone is hidden in messages and the log only: in what a command was asked for,
// the same word can be the name of a queue or a member of JSON. Without passwords, the console
// stays as it is, so that a terminal is still seen as one.
func (c Console) Hiding(args []string) Console {
	texts := slices.Clone(args)
	for _, variable := range os.Environ() {
		if name, value, _ := strings.Cut(variable, "="); strings.HasPrefix(name, "REDRIVE_") {
			texts = append(texts, value)
		}
	}

	found := credentialsIn(texts)
	if len(found.forms) == 0 {
		return c
	}

	inOutput := replacer(found.forms)
	inMessages := replacer(found.bare, found.forms)

	c.Stdout = &hider{c.Stdout, inOutput}
	c.Stderr = &hider{c.Stderr, inMessages}

	return c
}
