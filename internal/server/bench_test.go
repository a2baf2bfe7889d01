package server

import (
	"fmt"
	"io"
	"net/http"
	"sync"
	"testing"
	"time"

	"redrive/internal/job"
	"redrive/internal/retry"
)

// BenchmarkJobsPage asks for a page of 50 rows, with its query, over 32
// connections.
func BenchmarkJobsPage(b *testing.B) {
	h := start(b)
	jobs := make([]job.Job, 1000)
	for i := range jobs {
		jobs[i] = job.Job{Queue: "mail", Type: "email.send", Payload: fmt.Appendf(nil, `{"n":%d}`, i), Policy: retry.Default(), Timeout: time.Minute}
	}
	if _, err := h.store.Enqueue(b.Context(), time.Now(), jobs); err != nil {
		b.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 32}}
	next := make(chan struct{})
	var clients sync.WaitGroup
	for range 32 {
		clients.Go(func() {
			for range next {
				fetch(b, client, h.http.URL+"/jobs?state=available")
			}
		})
	}
	for b.Loop() {
		next <- struct{}{}
	}
	close(next)
	clients.Wait()
	client.CloseIdleConnections()
}

func fetch(b *testing.B, client *http.Client, url string) {
	response, err := client.Get(url)
	if err != nil {
		b.Error(err)
		return
	}
	defer response.Body.Close()
	if n, err := io.Copy(io.Discard, response.Body); err != nil || n < 10_000 || response.StatusCode != http.StatusOK {
		b.Errorf("%d bytes, %s, %v", n, response.Status, err)
	}
}
