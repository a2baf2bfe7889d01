package main

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"strings"

	"redrive/internal/config"
	"redrive/internal/handler"
	"redrive/internal/store/search"
)

const usualConfig = "redrive.yaml"

// loadConfig reads the named file, or the usual one where it exists.
func loadConfig(path string) (*config.Config, error) {
	if path == "" {
		if _, err := os.Stat(usualConfig); errors.Is(err, fs.ErrNotExist) {
			return config.Default(), nil
		}
		path = usualConfig
	}
	c, err := config.Load(path)
	if err != nil {
		return nil, usageError{err}
	}
	return c, nil
}

// check is the command that reads a configuration file, tries the examples of
// its rules, and says what it found.
type check struct {
	File string `arg:"" optional:"" help:"The file (redrive.yaml)." default:"redrive.yaml"`
}

// Run checks the file.
func (k *check) Run(c console) error {
	settings, err := loadConfig(k.File)
	if err != nil {
		return err
	}
	set, err := handler.New(settings.Handlers)
	if err != nil {
		return usageError{settings.Locate(err)}
	}
	set.Close()
	passed, wrong := settings.TryExamples()
	for _, err := range wrong {
		fmt.Fprintln(c.stdout, err)
	}
	if len(wrong) > 0 {
		return usage("%s: the rules do not do what its examples expect; examples that passed: %d", k.File, passed)
	}
	fmt.Fprintf(c.stdout, "%s is right: queues %d, handlers %d.\n", k.File, len(settings.Queues()), len(settings.Handlers))
	if n := settings.Rules().Len(); n+passed > 0 {
		fmt.Fprintf(c.stdout, "Its rules: %d. Examples that passed: %d.\n", n, passed)
	}
	return nil
}

// show is the command version.
type show struct{}

// Run prints the version.
func (*show) Run(c console) error {
	fmt.Fprintln(c.stdout, "redrive "+version)
	return nil
}

// checkListen refuses to be reached from the network, unless it is allowed: by
// a login, or because somebody said so.
func checkListen(address string, allowed bool) error {
	_, port, err := net.SplitHostPort(address)
	if err != nil || port == "" {
		return usage("--listen %q is not an address as 127.0.0.1:8080", address)
	}
	if !allowed && !isLoopback(address) {
		return usage("--listen %s can be reached from the network, and nobody can log in yet; add a user (dashboard user add NAME --role admin), listen on 127.0.0.1, or say --insecure-no-auth", address)
	}
	return nil
}

// isLoopback reports whether an address can be reached from this machine only.
func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}

// redaction takes out of what can be searched what the configuration hides.
func redaction(c *config.Config) search.Redaction {
	hide := c.Redactor()
	return search.Redaction{
		Data: func(typ string, data []byte) []byte { return hide.For(typ).Payload(data) }, Text: hide.Text, Fingerprint: hide.Fingerprint(),
	}
}
