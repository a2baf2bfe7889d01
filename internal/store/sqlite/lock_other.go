//go:build !linux

package sqlite

import "os"

// lockRange locks nothing: there are no locks here that belong to an open file. The
// lock file alone keeps other processes away, under the names that lead to the same
// path.
func lockRange(*os.File, bool) error { return nil }

// identify cannot tell here.
func identify(*os.File) (string, error) { return "", nil }

// isMount cannot tell here.
func isMount(string) bool { return false }
