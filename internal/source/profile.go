package source

import (
	"bytes"
	"slices"
	"strings"
)

// Profile is what people should know of the systems of one kind, in sentences.
type Profile struct {
	Title    string          `yaml:"title"`
	Version  string          `yaml:"version"`  // those that are known
	Attempts string          `yaml:"attempts"` // what the system counts
	Modes    map[Mode]string `yaml:"modes"`    // what a replay does
	Delays   bool            `yaml:"delays"`   // a replay can wait for a time to come
	Edits    bool            `yaml:"edits"`    // a replay can have another payload
	Takes    []string        `yaml:"takes"`    // which kinds of JSON that can be: object, array; empty: any payload
	Grants   []string        `yaml:"grants"`
	Hazards  []string        `yaml:"hazards"`
	Blank    []string        `yaml:"blank"` // what the system does not keep
}

// Unsupported says what of a request the system cannot do; empty when it does all.
func (p Profile) Unsupported(w Request) string {
	switch {
	case w.Kind != Replay:
		return ""
	case w.Mode != "" && p.Modes[w.Mode] == "":
		return "it has no mode " + string(w.Mode)
	case w.Later && !p.Delays:
		return "it has no delay for that: replay the job at once"
	case w.Edited && !p.Edits:
		return "its payload cannot be changed there"
	case w.Edited && !p.takes(w.Payload):
		return "its payload there must be a JSON " + strings.Join(p.Takes, " or ")
	}

	return ""
}

// takes reports whether a payload is of a kind that the system takes. Whether it is JSON
// at all was looked at before.
func (p Profile) takes(payload []byte) bool {
	kind := ""
	switch text := bytes.TrimSpace(payload); {
	case len(p.Takes) == 0:
		return true
	case bytes.HasPrefix(text, []byte("{")):
		kind = "object"
	case bytes.HasPrefix(text, []byte("[")):
		kind = "array"
	}

	return slices.Contains(p.Takes, kind)
}

// Report is what a source says about itself.
type Report struct {
	Version  string   // of the system or its schema, as far as it can be told
	Sees     []string // what can be read, in sentences
	May      []Kind   // what the source's rights allow
	Tells    bool     // it can be asked which jobs have succeeded
	Absent   bool     // nothing of the system is there yet
	Shared   string   // why the first record with a key is taken over and no other that has the same; empty: none has
	Warnings []string
}
