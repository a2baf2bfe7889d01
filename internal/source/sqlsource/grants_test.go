package sqlsource_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"redrive/internal/source"
	"redrive/internal/source/preset"
)

var (
	granting = regexp.MustCompile(`((?:[A-Z]+, )*[A-Z]+)(?: on ([a-z_]+(?:(?:, | and )[a-z_]+)*))?`)
	listing  = regexp.MustCompile(`, | and `)
)

// granted are the statements that give a user the rights which a preset names, such as
// "UPDATE on queues to replay, DELETE to discard". A sentence goes on with the tables that it
// named last.
func granted(p *preset.Preset, s system, to string) (statements []string) {
	for _, sentence := range p.Grants {
		sentence, _, _ = strings.Cut(sentence, ", so that")
		tables := ""
		for _, m := range granting.FindAllStringSubmatch(sentence, -1) {
			if m[2] != "" {
				tables = m[2]
			}
			for _, verb := range strings.Split(m[1], ", ") {
				if !slices.Contains([]string{"SELECT", "INSERT", "UPDATE", "DELETE", "USAGE"}, verb) {
					continue
				}
				for _, table := range listing.Split(tables, -1) {
					if verb != "USAGE" && table != "and" {
						statements = append(statements, fmt.Sprintf("GRANT %s ON %s TO %s", verb, s.qualified(p, table), to))
					}
				}
			}
			if s.engine == "postgres" && strings.Contains(sentence, "sequence") {
				statements = append(statements, fmt.Sprintf("GRANT USAGE ON ALL SEQUENCES IN SCHEMA %s TO %s", s.schema(p), to))
			}
		}
	}
	return statements
}

// qualified is the name of a table of a system, with its schema.
func (s system) qualified(p *preset.Preset, table string) string {
	if s.engine == "postgres" {
		return s.schema(p) + "." + table
	}
	return table
}

// schema is the one in which a system has its tables.
func (s system) schema(p *preset.Preset) string {
	for _, name := range p.Names {
		if schema, _, ok := strings.Cut(name, "."); ok {
			return schema
		}
	}
	return "public"
}

// The rights that a preset names are enough to see, to replay and to discard.
func TestGrants_AreEnough(t *testing.T) {
	each(t, func(t *testing.T, s system, address string) {
		p := preset.All()[s.preset]
		if s.engine == "sqlite" || s.preset == "graphile-worker" { // there are no users, or only the owner's rights count
			t.Skip("no single rights are named")
		}
		name := fmt.Sprintf("granted%d", databases.Add(1))
		to, as := name, strings.Replace(address, "postgres@", name+"@", 1)
		script := []string{"CREATE ROLE " + name + " LOGIN", "GRANT USAGE ON SCHEMA " + s.schema(p) + " TO " + name}
		if s.engine == "mysql" {
			to, as = name+"@'%'", strings.Replace(address, "root@", name+"@", 1)
			script = []string{"CREATE USER " + to}
		}
		execute(t, address, strings.Join(append(script, granted(p, s, to)...), ";\n"))

		o := s.origin(t, as)
		report, err := o.Check(t.Context())
		check(t, err)
		if !slices.Equal(report.May, []source.Kind{source.Replay, source.Discard}) {
			t.Errorf("%+v", report)
		}
		if got := act(t, o, source.Replay, source.Once, s.fit(t, o)); got.State != source.Done {
			t.Errorf("replay: %+v", got)
		}
		for _, r := range scan(t, o, 100) {
			if got := act(t, o, source.Discard, "", r); got.State != source.Done {
				t.Errorf("discard: %+v", got)
			}
		}
	})
}
