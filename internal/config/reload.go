package config

import (
	"maps"
	"slices"

	"github.com/goccy/go-yaml/ast"
)

// onlyAtStart are the sections that are read once: what was built of them cannot
// change while it is in use. The search index, for one, has what the redaction of its
// time left of each text.
var onlyAtStart = []string{
	"access", "base_path", "hosts", "limits", "redaction", "unknown_type",
}

// Replace makes this configuration, which every part of the program has, say what
// another version of its file says, which must not be used otherwise. It names the
// sections that differ: those that changed, and those that need a restart and stay as
// they were.
func (c *Config) Replace(by *Config) (changed, restart []string) {
	now := c.now()
	changed, restart = []string{}, []string{}
	all := maps.Clone(now.sections)
	maps.Copy(all, by.sections)

	for _, name := range slices.Sorted(maps.Keys(all)) {
		switch {
		case now.sections[name] == by.sections[name]:
		case slices.Contains(onlyAtStart, name):
			restart = append(restart, name)
		default:
			changed = append(changed, name)
		}
	}

	for _, name := range onlyAtStart { // a later version is compared with what is in use
		if text, ok := now.sections[name]; ok {
			by.sections[name] = text
		} else {
			delete(by.sections, name)
		}
	}

	by.proxy, by.basePath = now.proxy, now.basePath
	by.Hosts, by.limits = now.Hosts, now.limits
	by.redactor, by.UnknownType = now.redactor, now.UnknownType
	c.newest.Store(by)

	return changed, restart
}

// now is the newest version.
func (c *Config) now() *Config {
	if newest := c.newest.Load(); newest != nil {
		return newest
	}
	return c
}

// noteSections keeps the text of each section, to tell what a later version changes. The
// section sources writes over its text what it says.
func (c *Config) noteSections(root value) {
	if mapping, ok := root.node.(ast.MapNode); ok {
		entry := mapping.MapRange()
		for entry.Next() {
			c.sections[entry.Key().GetToken().Value] = entry.Value().String()
		}
	}
}
