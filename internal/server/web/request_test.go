package web

import (
	"io"
	"runtime"
	"testing"
)

// announced is a body with a declared length of which nothing has come yet.
type announced struct{ grown uint64 }

func (a *announced) Read([]byte) (int, error) {
	var now runtime.MemStats
	runtime.ReadMemStats(&now)
	a.grown = now.TotalAlloc
	return 0, io.EOF
}

func TestBody_GrowsWithWhatArrives(t *testing.T) {
	var before runtime.MemStats
	runtime.ReadMemStats(&before)
	body := &announced{}
	if _, err := readAll(body, 64<<20); err != nil {
		t.Fatal(err)
	}
	if grown := body.grown - before.TotalAlloc; grown > 1<<20 {
		t.Errorf("%d bytes are held for a body of which nothing came", grown)
	}
}
