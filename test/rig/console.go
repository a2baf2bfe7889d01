package rig

import (
	"strings"
	"testing"
)

// WithInput runs a command with a standard input.
func WithInput(t *testing.T, dir, input string, env []string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	cmd := Command(t, dir, args...)
	cmd.Stdin = strings.NewReader(input)
	cmd.Env = append(cmd.Env, env...)
	return Finish(t, cmd)
}

// The passwords of the users whom tests add.
const (
	AnaPassword = "correct horse battery"
	BoPassword  = "wrong donkey accumulator"
)
