package main

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"redrive/internal/client"
	"redrive/internal/config"
	"redrive/internal/handler"
	"redrive/internal/store/search"
	"redrive/web/templates/policypage"
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

// policy is the command that shows what a policy does, without a server.
type policy struct {
	Name   string `arg:"" help:"A preset (as daycry), a policy of the configuration, default, queue:NAME, type:NAME, or a file that holds a policy."`
	Config string `help:"Configuration file (redrive.yaml, where it exists)." env:"REDRIVE_CONFIG" placeholder:"FILE"`
}

// Run prints the delays of the policy, and what they add up to.
func (p *policy) Run(c console) error {
	settings, err := loadConfig(p.Config)
	if err != nil {
		return err
	}
	entry, err := p.find(settings)
	if err != nil {
		return usageError{err}
	}
	// The numbers are those of the page, so that both show the same herd.
	herd := entry.Policy.Herd(rand.New(rand.NewPCG(1, 1000)).Float64)
	return policypage.Write(c.stdout, entry, herd)
}

// find takes the name as one of the configuration first, then as a file's.
func (p *policy) find(settings *config.Config) (policypage.Entry, error) {
	named, ttr, err := settings.Find(p.Name)
	if err == nil {
		return policypage.Entry{Name: p.Name, Policy: named, TTR: ttr}, nil
	}
	if _, missing := os.Stat(p.Name); errors.Is(missing, fs.ErrNotExist) && !isFileName(p.Name) {
		return policypage.Entry{}, err
	}
	read, err := settings.ReadPolicy(p.Name)
	return policypage.Entry{Name: "file:" + p.Name, Policy: read}, err
}

// isFileName reports whether a name can only be meant as a file's.
func isFileName(name string) bool {
	return strings.ContainsRune(name, filepath.Separator) || slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(name))
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

// connect returns a client that sends the token of the environment: a command
// line can be seen by everybody on the machine.
func connect(server string) (*client.Client, error) {
	dashboard, err := client.New(server)
	if err != nil {
		return nil, usage("--server %w", err)
	}
	token, set := os.LookupEnv("REDRIVE_TOKEN")
	if dashboard.Token = strings.TrimSpace(token); set && dashboard.Token == "" {
		return nil, usage("REDRIVE_TOKEN is empty; write the token into it, or unset it")
	}
	return dashboard, nil
}

// redaction takes out of what can be searched what the configuration hides.
func redaction(c *config.Config) search.Redaction {
	hide := c.Redactor()
	return search.Redaction{
		Data: func(typ string, data []byte) []byte { return hide.For(typ).Payload(data) }, Text: hide.Text, Fingerprint: hide.Fingerprint(),
	}
}
