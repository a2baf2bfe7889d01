package config

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"redrive/internal/job"
	"redrive/internal/retry"
	"redrive/internal/source"
)

func TestReplace_IsSeenThroughTheFirstVersion(t *testing.T) {
	c := parse(t, "policy: {max_attempts: 3}\nqueues: {old: {workers: 2}}\nhosts: [a.example]\nunknown_type: hold\n")
	changed, restart := c.Replace(parse(t, `
policy: {max_attempts: 5}
queues: {new: {workers: 7, dead_letter: {enabled: false}}}
hosts: [b.example]
unknown_type: hold
trash: {age: 1d}
rules:
  before_enqueue:
    - {name: vip, when: 'true', priority: 3}
`))
	if !slices.Equal(changed, []string{"policy", "queues", "rules", "trash"}) || !slices.Equal(restart, []string{"hosts"}) {
		t.Errorf("changed %v, after a restart %v", changed, restart)
	}
	if !slices.Equal(c.Queues(), []string{"new"}) || c.Workers("new") != 7 || c.DeadLetters("new") || c.Rules().Len() != 1 {
		t.Errorf("queues %v, %d workers, %d rules", c.Queues(), c.Workers("new"), c.Rules().Len())
	}
	j := job.Job{Type: "t", Queue: "new", Payload: []byte("null")}
	if err := c.Admit(&j, retry.Patch{}); err != nil || j.Policy.MaxAttempts != 5 || j.Priority != 3 {
		t.Errorf("a new job has %d attempts and priority %d, %v", j.Policy.MaxAttempts, j.Priority, err)
	}
	if !slices.Equal(c.Hosts, []string{"a.example"}) || c.Retention().Trash != 24*time.Hour {
		t.Errorf("hosts %v, want those of the start; trash %v, want the new one", c.Hosts, c.Retention().Trash)
	}
}

// What needs a restart is told at each reload until there was one.
func TestReplace_ComparesWithWhatIsInUse(t *testing.T) {
	c := parse(t, "hosts: [a.example]\n")
	for range 2 {
		if changed, restart := c.Replace(parse(t, "hosts: [b.example]\nworkers: 3\n")); !slices.Equal(restart, []string{"hosts"}) {
			t.Errorf("changed %v, after a restart %v", changed, restart)
		}
	}
	if changed, restart := c.Replace(parse(t, "workers: 3\nhosts: [a.example]\n")); len(changed)+len(restart) > 0 {
		t.Errorf("back as it was: changed %v, after a restart %v", changed, restart)
	}
}

func TestReplace_TakesOverSources(t *testing.T) {
	file := filepath.Join(t.TempDir(), "url")
	text := "sources: {shop: {preset: laravel, url_file: '" + file + "'}}\n"
	c := parse(t, "")
	for _, step := range []struct {
		what, secret, text string
		changed            []string
	}{
		{"one is added", "mysql://redrive:first@db/shop", text, []string{"sources"}},
		{"nothing changes", "mysql://redrive:first@db/shop", text, []string{}},
		{"the text changes, and not what it says", "mysql://redrive:first@db/shop", "# the shop\n" + text + "\n", []string{}},
		{"the secret is another one", "mysql://redrive:second@db/shop", text, []string{"sources"}},
		{"it allows something", "mysql://redrive:second@db/shop", strings.Replace(text, "}}", ", allow: [replay]}}", 1), []string{"sources"}},
	} {
		if err := os.WriteFile(file, []byte(step.secret), 0o600); err != nil {
			t.Fatal(err)
		}
		changed, restart := c.Replace(parse(t, step.text))
		if !slices.Equal(changed, step.changed) || len(restart) > 0 {
			t.Errorf("%s: changed %v, after a restart %v", step.what, changed, restart)
		}
	}

	all := c.Sources()
	if len(all) != 1 || all[0].URL.Reveal() != "mysql://redrive:second@db/shop" || !slices.Equal(all[0].Allow, []source.Kind{source.Replay}) {
		t.Errorf("the sources are %+v", all)
	}
	if changed, _ := c.Replace(parse(t, "")); !slices.Equal(changed, []string{"sources"}) || len(c.Sources()) > 0 {
		t.Errorf("without the section: changed %v, the sources are %+v", changed, c.Sources())
	}
}

// The table of the documentation says of each section when a change of it takes effect.
func TestReload_IsDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/operate.md")
	if err != nil {
		t.Fatal(err)
	}
	var late []string
	for line := range strings.Lines(string(text)) {
		if sections, ok := strings.CutSuffix(strings.TrimSpace(line), " | after a restart |"); ok {
			late = append(late, strings.Split(strings.Trim(sections, "| `"), "`, `")...)
		}
	}
	if !slices.Equal(late, onlyAtStart) {
		t.Errorf("docs/operate.md says that %v need a restart, want %v", late, onlyAtStart)
	}
	if !strings.Contains(string(text), "\n| `sources` | immediately.") {
		t.Error("docs/operate.md does not say that sources change immediately")
	}
}
