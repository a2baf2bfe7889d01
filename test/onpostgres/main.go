// Command onpostgres runs a command, such as go test, beside a PostgreSQL server of its own. Tests
// that can use either database use that one then: see package databasetest.
package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"

	"redrive/internal/store/databasetest"
	"redrive/internal/store/postgres/postgrestest"
)

func main() {
	command := exec.Command(os.Args[1], os.Args[2:]...)
	command.Stdin, command.Stdout, command.Stderr = os.Stdin, os.Stdout, os.Stderr
	command.Env = append(os.Environ(), databasetest.OnPostgres)

	err := postgrestest.Serve(command)
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		os.Exit(failed.ExitCode())
	}

	if err != nil {
		fmt.Fprintln(os.Stderr, "onpostgres:", err)
		os.Exit(1)
	}
}
