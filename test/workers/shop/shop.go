// Package shop is the job that every system runs.
package shop

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Charge notes in the file ran of dir that the order ran, and fails while there is a
// file broken.
func Charge(dir, order string) error {
	ran, err := os.OpenFile(filepath.Join(dir, "ran"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(ran, order)
	if err := errors.Join(err, ran.Close()); err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(dir, "broken")); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("card declined: order %s", order)
	}
	return nil
}
