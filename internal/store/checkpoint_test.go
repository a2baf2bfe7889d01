package store

import (
	"os"
	"testing"
)

// What was committed comes into the file while the log is still small, and
// without anybody closing it.
func TestCheckpointer_MovesPagesBesideTheWriter(t *testing.T) {
	s := open(t, Options{})
	size := func() int64 {
		info, err := os.Stat(s.path)
		check(t, err)
		return info.Size()
	}
	before := size()
	for range 4 {
		enqueue(t, s, checkpointPages/2)
	}
	wait(t, func() bool { return size() > before })
}
