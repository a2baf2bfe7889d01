package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"redrive/internal/config"
	"redrive/internal/seed"
	"redrive/internal/store"
	"redrive/internal/store/sqlite"
)

// doctor looks at a database without changing it. It works beside a running
// dashboard.
type doctor struct {
	DB string `name:"db" help:"Database file (${default})." default:"redrive.db" env:"REDRIVE_DB" placeholder:"FILE"`
}

// Run prints a line for each thing that was looked at.
func (d *doctor) Run(c console) error {
	if _, err := os.Stat(d.DB); err != nil {
		return usage("there is no database to look at: %v", err)
	}
	found, err := store.Examine(context.Background(), sqlite.File{Path: d.DB})
	bad := 0
	for _, f := range found {
		verdict := "ok      "
		if f.Problem != "" {
			bad++
			verdict, f.What = "PROBLEM ", f.What+": "+f.Problem
		}
		fmt.Fprintln(c.stdout, verdict+f.What)
	}
	if err == nil && bad > 0 {
		err = fmt.Errorf("%d of %d checks of %s found a problem; keep a copy of the file before anything else", bad, len(found), d.DB)
	}
	return err
}

// seedCommand writes a large database, to see how the pages fare on it.
type seedCommand struct {
	DB   string `name:"db" help:"Database file to make; it must not exist." required:"" placeholder:"FILE"`
	Jobs int    `help:"Jobs in all (${default})." default:"1000000" placeholder:"N"`
	Dead int    `help:"Dead ones among them (${default})." default:"100000" placeholder:"N"`
	Seed uint64 `help:"The same seed writes the same jobs (${default})." default:"1" placeholder:"N"`
}

// Run writes the jobs and says how far it is. What a signal cuts short is
// deleted: nobody shall measure half a crowd.
func (s *seedCommand) Run(c console) error {
	if s.Jobs < 1 || s.Dead < 0 || s.Dead > s.Jobs {
		return usage("--jobs %d --dead %d: at least one job, and no more dead ones than jobs", s.Jobs, s.Dead)
	}
	if _, err := os.Stat(s.DB); err == nil {
		return usage("--db %s: the file exists; name a new one", s.DB)
	}
	ctx, _, release := interrupts()
	defer release()
	begin := time.Now()
	err := s.write(ctx, c, begin)
	fmt.Fprint(c.stderr, "\r\033[K")
	if err != nil {
		for _, suffix := range []string{"", "-wal", "-shm", ".lock"} {
			if problem := os.Remove(s.DB + suffix); problem != nil && !errors.Is(problem, os.ErrNotExist) {
				err = errors.Join(err, problem)
			}
		}
		return err
	}
	fmt.Fprintf(c.stdout, "%s: %d jobs, %d of them dead, in %v.\n", s.DB, s.Jobs, s.Dead, time.Since(begin).Round(time.Second))
	if kept := config.Default().Retention().Count; int64(s.Dead) > kept {
		fmt.Fprintf(c.stdout, "Serve it with dead_letter.retention.count above %d, or all but the newest %d are pruned.\n", s.Dead, kept)
	}
	return nil
}

func (s *seedCommand) write(ctx context.Context, c console, begin time.Time) error {
	large, err := store.Open(ctx, store.Options{Database: sqlite.File{Path: s.DB, Relaxed: true}, Redact: redaction(config.Default())})
	if err != nil {
		return err
	}
	plan := seed.Plan{Jobs: s.Jobs, Dead: s.Dead, Seed: s.Seed, Now: begin}
	err = plan.Write(ctx, large, large.Search, c.progress("Writing"))
	return errors.Join(err, large.Close())
}
