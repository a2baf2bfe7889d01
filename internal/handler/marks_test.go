package handler

import "testing"

func BenchmarkMarked(b *testing.B) {
	for b.Loop() {
		marked("REDRIVE_EXECUTION=none")
	}
}
