package rig

import (
	"bytes"
	"strings"
	"sync"
	"testing"
	"time"
)

// Transcript is what a process says, to be read while it speaks.
type Transcript struct {
	mu   sync.Mutex
	text bytes.Buffer
	more chan struct{} // one slot: there is more
}

// NewTranscript returns one in which nothing is written yet.
func NewTranscript() *Transcript { return &Transcript{more: make(chan struct{}, 1)} }

func (t *Transcript) Write(text []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	select {
	case t.more <- struct{}{}:
	default:
	}
	return t.text.Write(text)
}

func (t *Transcript) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.text.String()
}

// Await waits until the text was said.
func (t *Transcript) Await(test testing.TB, text string) {
	test.Helper()
	late := time.After(3 * time.Minute)
	for !strings.Contains(t.String(), text) {
		select {
		case <-t.more:
		case <-late:
			test.Fatalf("it did not say %q, but %q", text, t)
		}
	}
}
