package demo

import (
	"fmt"

	"redrive/internal/job"
)

// document is what a customer uploaded. Some have no pages, and thumbnail does not
// check that: this is the shop's bug.
type document struct{ pages []string }

func (d *document) page(n int) string { return d.pages[n] }

// thumbnail draws the page that a job wants.
func (d *document) thumbnail(j job.Job) error {
	return fmt.Errorf("drew %q of an empty document", d.page(thumbnailPage(j)))
}

// thumbnailPage is the page that the panicking handler looks for.
func thumbnailPage(j job.Job) int { return 1 + len(j.Payload)%7 }

// tracePanic is the panic of thumbnail as the engine writes it down, for the history,
// in which no handler runs. It names the functions above: the panics of the history
// and those of live jobs are one group.
const tracePanic = `goroutine 4021 [running]:
panic({0x1008c2e60?, 0x140001a8018?})
	runtime/panic.go:792 +0x124
redrive/internal/demo.(*document).page(...)
	redrive/internal/demo/thumbnail.go:13
redrive/internal/demo.(*document).thumbnail(0x140002a8000, {{{0x14000512000, 0x24}, 0x1, 0x1}, {0x140003c4010, 0x6}})
	redrive/internal/demo/thumbnail.go:17 +0x1c4
redrive/internal/demo.(*World).run(0x14000170000, {0x100a3e1b8, 0x140004d2380})
	redrive/internal/demo/demo.go:154 +0x2f8`
