package main

import (
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"redrive/internal/config"
	"redrive/web/templates/policypage"
)

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
