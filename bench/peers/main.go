// Command peers runs the same workloads on Redrive and on other Go queues, in
// turns in one run, and prints what each of them reaches. It runs on Linux, is a
// module of its own, so that the product needs none of the others' modules, and
// starts the servers that they need itself.
//
// A measurement opens an empty database, so that none is slowed by the one
// before. In each round every workload runs on every queue, the queues in another
// order each time; a ratio is taken within a round, where both meet the same
// disturbances. Every commit of every queue waits for the disk.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// systems are the columns of the table. Each is made with a folder for a server's data.
var systems = []system{
	{"redrive", newRedrive},
	{"redrive-postgres", newRedrivePostgres},
	{"goqite", newGoqite},
	{"backlite", newBacklite},
	{"river-sqlite", newRiverSQLite},
	{"river-postgres", newRiverPostgres},
	{"asynq", newAsynq},
}

// system is a queue that can be measured.
type system struct {
	name string // for -base and -only
	make func(ctx context.Context, dir string) (System, error)
}

func main() {
	base := flag.String("base", "redrive", "the queue with which the others are compared")
	rounds := flag.Int("rounds", 5, "how often every workload is run on every queue")
	only := flag.String("only", "", "names of queues, with commas between them, to compare it with: "+strings.Join(names(), ", "))
	rows := flag.String("workloads", "", "a part of the names of the workloads to run; default all")
	document := flag.String("write", "", "the document whose table to replace")

	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()

	if err := run(ctx, *rounds, *base, *only, *rows, *document); err != nil {
		stop()
		fmt.Fprintln(os.Stderr, "peers:", err)
		os.Exit(1)
	}
}

func names() (all []string) {
	for _, s := range systems {
		all = append(all, s.name)
	}
	return all
}

// chosen are the systems to be measured, the base first. Without a choice these are all.
func chosen(base, only string) ([]system, error) {
	for _, name := range strings.Split(only, ",") {
		if only != "" && !slices.Contains(names(), name) {
			return nil, fmt.Errorf("-only %s: %s is none of %s", only, name, strings.Join(names(), ", "))
		}
	}

	at := slices.IndexFunc(systems, func(s system) bool { return s.name == base })
	if at < 0 {
		return nil, fmt.Errorf("-base %s is none of %s", base, strings.Join(names(), ", "))
	}

	all := []system{systems[at]}
	for i, s := range systems {
		if i != at && (only == "" || slices.Contains(strings.Split(only, ","), s.name)) {
			all = append(all, s)
		}
	}

	return all, nil
}

func run(ctx context.Context, rounds int, base, only, rows, document string) (err error) {
	if document != "" && (only+rows != "" || base != systems[0].name) {
		return errors.New("the document takes the whole table: leave out -base, -only and -workloads")
	}

	b := &bench{rounds: rounds, size: FullSize}
	for _, w := range Workloads {
		if strings.Contains(w.Name, rows) {
			b.workloads = append(b.workloads, w)
		}
	}

	b.dir, err = tempDir()
	if err != nil {
		return err
	}

	defer func() { err = errors.Join(err, b.close()) }()

	all, err := chosen(base, only)
	if err != nil {
		return err
	}

	for _, s := range all {
		if err := b.add(ctx, s.make); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}

	if err := b.run(ctx); err != nil {
		return err
	}

	report := b.report()
	fmt.Println(report)

	if document == "" {
		return nil
	}

	return writeSection(document, report)
}

// tempDir makes a folder that servers of another user can pass through.
func tempDir() (string, error) {
	dir, err := os.MkdirTemp("", "redrive-peers-")
	if err != nil {
		return "", err
	}

	return dir, os.Chmod(dir, 0o711)
}

// bench is one run of the program.
type bench struct {
	dir       string
	rounds    int
	size      Size
	workloads []Workload
	systems   []System
	rates     map[cell][]float64 // one for each round
	syncs     []float64          // fdatasync calls per second, one for each round
}

type cell struct{ workload, system int }

// add starts what a system needs.
func (b *bench) add(ctx context.Context, makeSystem func(context.Context, string) (System, error)) error {
	dir, err := os.MkdirTemp(b.dir, "server-")
	if err != nil {
		return err
	}

	s, err := makeSystem(ctx, dir)
	if err == nil {
		b.systems = append(b.systems, s)
	}

	return err
}

// close stops the servers and removes every file.
func (b *bench) close() (err error) {
	for _, s := range b.systems {
		if s.Close != nil {
			err = errors.Join(err, s.Close())
		}
	}

	return errors.Join(err, os.RemoveAll(b.dir))
}

// run takes all measurements, and says what it is doing.
func (b *bench) run(ctx context.Context) error {
	b.rates = map[cell][]float64{}
	for round := range b.rounds {
		syncs, err := diskSyncs(filepath.Join(b.dir, "sync"))
		if err != nil {
			return err
		}

		b.syncs = append(b.syncs, syncs)
		fmt.Fprintf(os.Stderr, "round %d of %d: the disk syncs %.0f times a second\n", round+1, b.rounds, syncs)

		for w, workload := range b.workloads {
			// Each round begins with another system: the machine may become slower meanwhile.
			for i := range b.systems {
				at := (i + round) % len(b.systems)

				s := b.systems[at]
				if workload.Batch && s.Single {
					continue
				}

				rate, err := b.measure(ctx, s, workload)
				if err != nil {
					return fmt.Errorf("%s, %s: %w", s.Name, workload.Name, err)
				}

				fmt.Fprintf(os.Stderr, "  %-40s %-20s %10.0f %s\n", workload.Name, s.Name, rate, workload.Unit)
				b.rates[cell{w, at}] = append(b.rates[cell{w, at}], rate)
			}
		}
	}

	return nil
}

// measure runs one workload on an empty database.
func (b *bench) measure(ctx context.Context, s System, w Workload) (rate float64, err error) {
	dir, err := os.MkdirTemp(b.dir, "queue-")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()

	q, err := s.Open(ctx, dir)
	if err != nil {
		return 0, err
	}

	defer func() { err = errors.Join(err, q.Close()) }()

	size := b.size
	if s.Single {
		size.Batch = 1
	}

	return w.Run(ctx, q, size)
}
