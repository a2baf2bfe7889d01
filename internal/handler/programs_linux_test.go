package handler

import (
	"errors"
	"syscall"
	"testing"
)

// Who cannot look must not conclude that nothing is left.
func TestMarked_WithoutDescriptorsIsAnError(t *testing.T) {
	var before syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	none := before
	none.Cur = 1
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &none); err != nil {
		t.Fatal(err)
	}
	_, err := marked("REDRIVE_EXECUTION=none")
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	if !errors.Is(err, syscall.EMFILE) {
		t.Errorf("marked returned %v", err)
	}
}

func BenchmarkMarked(b *testing.B) {
	for b.Loop() {
		if _, err := marked("REDRIVE_EXECUTION=none"); err != nil {
			b.Fatal(err)
		}
	}
}
