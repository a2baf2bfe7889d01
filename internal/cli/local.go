package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"redrive/internal/app"
	"redrive/internal/cli/console"
	"redrive/internal/cli/reach"
	"redrive/internal/config"
	"redrive/internal/seed"
	"redrive/internal/store"
	"redrive/internal/store/location"
	"redrive/internal/usage"
	"redrive/web/templates/policypage"
)

// versionCommand is dashboard version.
type versionCommand struct{}

// Run prints the version.
func (*versionCommand) Run(c console.Console) error {
	fmt.Fprintln(c.Stdout, "redrive "+c.Version)
	return nil
}

// checkCommand is dashboard check: it reads a configuration file as serve would, and
// tries the examples of its rules.
type checkCommand struct {
	File string `arg:"" optional:"" help:"The file (redrive.yaml)." default:"redrive.yaml"`
}

// Run prints what the file holds, or what is wrong with it.
func (k *checkCommand) Run(c console.Console) error {
	settings, err := loadConfig(k.File)
	if err != nil {
		return err
	}

	if err := app.CheckHandlers(settings); err != nil {
		return err
	}

	passed, wrong := settings.TryExamples()
	for _, err := range wrong {
		fmt.Fprintln(c.Stdout, err)
	}

	if len(wrong) > 0 {
		return usage.Errorf("%s: the rules do not do what the examples expect; examples that passed: %d", k.File, passed)
	}

	fmt.Fprintf(c.Stdout, "%s is valid. It configures %s and %s.\n",
		k.File, console.Counted(len(settings.Queues()), "queue"), console.Counted(len(settings.Handlers), "handler"))

	if n := settings.Rules().Len(); n+passed > 0 {
		fmt.Fprintf(c.Stdout, "It has %s, and %s passed.\n", console.Counted(n, "rule"), console.Counted(passed, "example"))
	}

	return nil
}

// policyCommand is dashboard policy: it shows what a retry policy does.
type policyCommand struct {
	Name   string `arg:"" help:"${policy}"`
	Config string `help:"Configuration file (redrive.yaml, where it exists)." env:"REDRIVE_CONFIG" placeholder:"FILE"`
}

// Run prints the delays of the policy, and what they add up to.
func (p *policyCommand) Run(c console.Console) error {
	settings, err := loadConfigBy(config.LoadPolicies, p.Config)
	if err != nil {
		return err
	}

	entry, err := p.find(settings)
	if err != nil {
		return usage.Of(err)
	}
	// The seed is that of the page, so that both show the same simulation.
	simulated := entry.Policy.Simulate(rand.New(rand.NewPCG(1, 1000)).Float64)

	return policypage.Write(c.Stdout, entry, simulated)
}

// find looks for a policy of that name in the configuration first, and then for a
// file.
func (p *policyCommand) find(settings *config.Config) (policypage.Entry, error) {
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

// isFileName reports whether a name can only be that of a file: then what is wrong
// with the file is said, and not that there is no such policy.
func isFileName(name string) bool {
	return strings.ContainsRune(name, filepath.Separator) || slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(name))
}

// doctorCommand is dashboard doctor: it examines a database without changing it. A
// dashboard may have the database open. Each check is an invariant that the store
// keeps in every commit, so a problem means damage or a bug.
type doctorCommand struct {
	DB string `name:"db" help:"${database} (${default})." default:"redrive.db" env:"REDRIVE_DB" placeholder:"DATABASE"`
}

// Run prints a line for each check; a problem makes the command fail.
func (d *doctorCommand) Run(c console.Console) error {
	where := location.Of(d.DB)

	found, err := store.Examine(context.Background(), where.Database(false))
	if errors.Is(err, fs.ErrNotExist) {
		return usage.Errorf("there is no database to check: %w", err)
	}

	bad := 0
	for _, f := range found {
		verdict := "ok      "
		if f.Problem != "" {
			bad++
			verdict, f.What = "PROBLEM ", f.What+": "+f.Problem
		}

		fmt.Fprintln(c.Stdout, verdict+f.What)
	}

	if err == nil && bad > 0 {
		err = fmt.Errorf("%d of %d checks of %s found a problem: copy the database, then restore a backup; "+
			"report a problem that comes back", bad, len(found), where)
	}

	return err
}

// seedCommand is dashboard seed. It goes through the ordinary store, so that every
// index and counter is as in production: it writes a large database, to measure how fast
// the pages are on it.
type seedCommand struct {
	DB   string `name:"db" help:"Database file to create; it must not exist." required:"" placeholder:"FILE"`
	Jobs int    `help:"Total number of jobs (${default})." default:"1000000" placeholder:"N"`
	Dead int    `help:"How many of them are dead (${default})." default:"100000" placeholder:"N"`
	Seed uint64 `help:"The same seed writes the same jobs (${default})." default:"1" placeholder:"N"`
}

// Run writes the jobs and shows the progress. It deletes a database that a signal cut
// short, so that no one measures half of one.
func (s *seedCommand) Run(c console.Console) error {
	if s.Jobs < 1 || s.Dead < 0 || s.Dead > s.Jobs {
		return usage.Errorf("--jobs %d --dead %d: at least one job, and no more dead ones than jobs", s.Jobs, s.Dead)
	}

	if _, err := reach.File(s.DB, "Name a new file; the large database is for measuring"); err != nil {
		return err
	}

	for _, file := range s.files() { // they are deleted if a signal comes
		if _, err := os.Lstat(file); err == nil {
			return usage.Errorf("--db %s: %s exists; name a new file", s.DB, file)
		}
	}

	ctx, release := c.Until(syscall.SIGINT, syscall.SIGTERM)
	defer release()

	begin := time.Now()
	err := s.write(ctx, c, begin)
	c.Clear()

	if err != nil {
		for _, file := range s.files() {
			if problem := os.Remove(file); problem != nil && !errors.Is(problem, os.ErrNotExist) {
				err = errors.Join(err, problem)
			}
		}

		return err
	}

	fmt.Fprintf(c.Stdout, "%s: %d jobs, %d of them dead, in %v.\n", s.DB, s.Jobs, s.Dead, time.Since(begin).Round(time.Second))
	fmt.Fprintln(c.Stdout, "They ended over the last month. To keep all, serve with retention: {completed: 0, cancelled: 0, discarded: 0}.")

	return nil
}

// files are those of the database: SQLite keeps some beside it, and the store its
// lock.
func (s *seedCommand) files() []string {
	all := []string{s.DB + ".lock"}
	for _, name := range []string{s.DB, s.DB + "-search"} {
		all = append(all, name, name+"-wal", name+"-shm", name+"-journal")
	}

	return all
}

// write writes the whole database. Its search index hides what the built-in
// configuration hides.
func (s *seedCommand) write(ctx context.Context, c console.Console, begin time.Time) error {
	large, err := store.Open(ctx, store.Options{Database: location.Of(s.DB).Database(true), Redact: app.Redaction(config.Default())})
	if err != nil {
		return err
	}

	plan := seed.Plan{Jobs: s.Jobs, Dead: s.Dead, Seed: s.Seed, Now: begin}
	err = plan.Write(ctx, large, large.Search, c.Progress("Writing"))

	return errors.Join(err, large.Close())
}
