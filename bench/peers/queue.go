package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
)

// Queue is a queue under test on an empty database of its own. Enqueue can be
// called by many goroutines.
type Queue interface {
	// Enqueue stores jobs, all in one call, and returns when they are on the disk.
	Enqueue(ctx context.Context, jobs []Job) error
	// Work runs handle for the jobs, at most so many at once, until stop. A job
	// whose handler returns an error is run again at once.
	Work(ctx context.Context, workers int, handle Handler) (stop func() error, err error)
	// Left counts the jobs that are not durably finished.
	Left(ctx context.Context) (int, error)
	Close() error
}

// Handler works on one job.
type Handler func(Job) error

// System opens queues of one kind.
type System struct {
	Name     string
	Settings string // in the words of the document
	Single   bool   // it takes one job with each call
	Open     func(ctx context.Context, dir string) (Queue, error)
	Close    func() error // stops the server that it needs; may be nil
}

// Job is what every queue carries, as 100 bytes of JSON.
type Job struct {
	N    int    `json:"n"` // jobs of one measurement are numbered from 0
	Text string `json:"text"`
}

const payloadSize = 100

func newJob(n int) Job {
	return Job{n, strings.Repeat("x", payloadSize-len(fmt.Sprintf(`{"n":%d,"text":""}`, n)))}
}

// newJobs returns the jobs numbered from first on.
func newJobs(first, n int) []Job {
	jobs := make([]Job, n)
	for i := range jobs {
		jobs[i] = newJob(first + i)
	}

	return jobs
}

// encode is the payload for the queues that take bytes.
func encode(j Job) ([]byte, error) { return json.Marshal(j) }

// decoding returns the handler for the queues that give out bytes.
func decoding(handle Handler) func(payload []byte) error {
	return func(payload []byte) error {
		var j Job
		if err := json.Unmarshal(payload, &j); err != nil {
			return err
		}

		return handle(j)
	}
}
