package main

import (
	"context"
	"fmt"
	"os"

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
