package api

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/labstack/echo/v4"

	"redrive/internal/access"
	"redrive/internal/apitype/work"
	"redrive/internal/invalid"
	"redrive/internal/job"
	"redrive/internal/server/problem"
	"redrive/internal/server/web"
)

// An idempotency key lets a program that got no answer send its request again. It
// belongs to the caller who sends it: a token, a user, or any client of a
// dashboard that is open to all. The queue is part of what is asked for, like the
// type, the payload and meta: when any of them differs, the request is another one
// and is refused. When a job may run, how often it is tried and its trace id are
// those of the first request, because programs compute them again for each request.

const headerKey = "Idempotency-Key"

// key reads the idempotency key of a request, empty when it has none. A batch
// appends a number to it, hence the room below the limit.
func key(c echo.Context) (string, error) {
	all := c.Request().Header.Values(headerKey)
	if len(all) == 0 {
		return "", nil
	}

	if len(all) > 1 {
		return "", &invalid.Error{Field: headerKey, Problem: "is sent twice; send one"}
	}

	if all[0] == "" { // most likely a variable that is not set: without a key a repeat would make a second job
		return "", &invalid.Error{Field: headerKey, Problem: "is empty; send a key, or leave the header out"}
	}

	if k := all[0]; len(k) > job.MaxKey-8 || !utf8.ValidString(k) {
		return "", &invalid.Error{Field: headerKey, Problem: fmt.Sprintf("must be valid UTF-8 of at most %d bytes", job.MaxKey-8)}
	}

	return all[0], nil
}

// setKeys gives the jobs of a batch keys of their own. Each stands for the whole
// batch, so that another batch is refused even where some jobs are alike.
func setKeys(jobs []job.Job, key, caller string) {
	parts := make([]string, len(jobs))
	for i, j := range jobs {
		parts[i] = j.Content
	}

	whole := hash(parts...)
	for i := range jobs {
		jobs[i].Key, jobs[i].Caller, jobs[i].Content = fmt.Sprintf("%s\n%d", key, i), caller, whole
	}
}

// contentOf is what makes a request for a job another one under the same key.
func contentOf(j job.Job) string { return hash(j.Queue, j.Type, string(j.Payload), string(j.Meta)) }

// hash is one for several texts: their lengths keep them apart.
func hash(parts ...string) string {
	h := sha256.New()
	for _, part := range parts {
		fmt.Fprintf(h, "%d:", len(part))
		io.WriteString(h, part)
	}

	return hex.EncodeToString(h.Sum(nil))
}

// sees reports whether the caller may look at jobs. Programs that only bring
// them may not.
func sees(c echo.Context) bool { return web.CallerOf(c).Role.May(access.View) }

// receiptOf is a job in the answer to a caller that may not look at jobs.
func receiptOf(j job.Job) work.JobReceipt { return work.JobReceipt{ID: j.ID, State: j.State} }

// reused is the answer to a key that was used for something else. It names what
// that was to those who may look at it.
func reused(c echo.Context, err error) error {
	again := new(job.KeyReused)
	if !errors.As(err, &again) {
		return err
	}

	f := problem.In(problem.KeyReused, headerKey,
		"this key was used before for a different request, and nothing was changed; send a new key, or repeat the first request exactly")
	if sees(c) {
		f.FirstID = again.First
	}

	return f
}
