package engine_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"redrive/internal/job"
	"redrive/internal/redact"
	"redrive/internal/retry"
)

// What a handler returns is searched for secrets before a rule, the cut of what is
// kept or the error group sees any of it, however the handler ends.
func TestEngine_HidesSecretsBeforeAnythingElse(t *testing.T) {
	const canary = "canary7f3a91"
	said := func(n int) string { return fmt.Sprintf("login failed, password:\n  %s%d", canary, n) }
	for name, end := range map[string]func(n int) error{
		"an error": func(n int) error { return errors.New(said(n)) },
		"a failure": func(n int) error {
			return &job.Failure{ErrorInfo: job.ErrorInfo{Type: said(n), Message: said(n)}, Trace: said(n)}
		},
		"a panic": func(n int) error { panic(said(n)) },
		"a long message": func(n int) error {
			return &job.Failure{ErrorInfo: job.ErrorInfo{Message: "password=\"" + strings.Repeat("x ", job.MaxErrorMessage) + said(n) + "\""}}
		},
		"its own error breaks": func(n int) error { return broken(said(n)) },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(r *rig) {
				n, ruled := 0, ""
				r.on("bad", func(context.Context, job.Job) error { n++; return end(n) })
				r.start(func(o *options) {
					o.Workers = func(string) int { return 1 }
					o.Hide = redact.Default().Text
					o.Rules = func(_ job.Job, end job.Ending) (*retry.Ruling, string) {
						ruled += fmt.Sprint(end)
						return nil, ""
					}
				})
				ids := r.enqueue(once("bad"), once("bad"))
				synctest.Wait()
				first, second := r.detail(ids[0]), r.detail(ids[1])
				if kept := fmt.Sprint(first, second); strings.Contains(kept, canary) || strings.Contains(ruled, canary) {
					t.Errorf("kept is %.900s\nthe rules saw %.900s", kept, ruled)
				}
				if first.Group.Fingerprint == "" || first.Group.Fingerprint != second.Group.Fingerprint {
					t.Errorf("two failures that differ in their secrets are of the groups %q and %q", first.Group.Message, second.Group.Message)
				}
			})
		})
	}
}

// broken is an error whose text cannot be asked for.
type broken string

func (b broken) Error() string { panic(string(b)) }

// A text that breaks the redaction is not kept, and nothing else ends for it.
func TestEngine_KeepsNoTextThatCannotBeSearchedForSecrets(t *testing.T) {
	bubble(t, func(r *rig) {
		r.on("bad", fails(failure("x")))
		r.start(func(o *options) {
			o.Hide = func(text string) string {
				if text != "" {
					panic("no idea")
				}
				return text
			}
		})
		id := r.enqueue(once("bad"))[0]
		synctest.Wait()
		r.want(id, "dead_letter", 1)
		if e := r.detail(id).Job.Error; e.Type != "x" || !strings.Contains(e.Message, "not stored") {
			t.Errorf("the error is %+v", e)
		}
	})
}

// Policies and rules go by the type of an error, so a name of one stays as it is.
func TestEngine_LeavesTheTypesOfErrors(t *testing.T) {
	bubble(t, func(r *rig) {
		r.start(func(o *options) { o.Hide = func(string) string { return redact.Hidden } })
		var ids []string
		for _, typ := range []string{"http.503", "token:expired", `App\Errors\Denied`, "java.lang.Outer$Inner"} {
			r.on(typ, fails(failure(typ)))
			ids = append(ids, r.enqueue(once(typ))...)
		}
		synctest.Wait()
		for _, id := range ids {
			if j := r.detail(id).Job; j.Error.Type != j.Type || j.Error.Message != redact.Hidden {
				t.Errorf("the error of %s is %+v", j.Type, j.Error)
			}
		}
	})
}
