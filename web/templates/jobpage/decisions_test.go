package jobpage

import (
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"redrive/internal/history"
	"redrive/internal/job"
	"redrive/internal/retry"
)

// decisions is one decision for each way in which Decide can come to one.
func decisions() []retry.Decision {
	yes, no, wait := true, false, retry.Default().MaxInterval
	failures := []retry.Failure{
		{}, {Attempt: 9}, {Type: "auth.expired"}, {Unknown: retry.UnknownFail}, {Unknown: retry.UnknownDeadLetter}, {Unknown: retry.UnknownDelete},
		{Expired: retry.DeadLetter}, {Expired: retry.Discard},
		{Answer: retry.Answer{Retryable: &yes}}, {Answer: retry.Answer{Retryable: &no}}, {Answer: retry.Answer{RetryAfter: &wait}},
	}
	for _, code := range []retry.Code{retry.CodeRetry, retry.CodeDiscard, retry.CodeDeadLetter, retry.CodeFail} {
		failures = append(failures, retry.Failure{Answer: retry.Answer{Code: code}})
	}
	for _, action := range []retry.Action{retry.Retry, retry.DeadLetter, retry.Discard} {
		failures = append(failures, retry.Failure{Ruling: &retry.Ruling{Rule: "nightly", Action: action}})
	}
	for _, r := range retry.Poison() {
		failures = append(failures, retry.Failure{Answer: retry.Answer{Poison: r}})
	}
	policy := retry.Default()
	policy.NonRetryable = []string{"auth.*"}
	all := []retry.Decision{{Action: retry.Complete, By: "handler:success"}}
	for _, f := range failures {
		all = append(all, policy.Decide(f, always(0)))
	}
	return all
}

func TestDecisions_AllHaveWords(t *testing.T) {
	for _, d := range decisions() {
		steps := decidersOf(job.Attempt{Outcome: job.Failed, DecidedBy: d.By, Action: d.Action, Delay: d.Delay})
		decided := 0
		for _, r := range steps {
			if r.decided {
				decided++
			}
		}
		if len(steps) < 3 || decided != 1 {
			t.Errorf("%s is explained by %q: want who else was asked, and one who decided", d.By, decidersText(steps))
		}
	}
}

// The codes are written in one file. One that no decision above leads to has
// no words that were looked at.
func TestDecisions_AreAllThatAreWritten(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "../../../internal/retry/decide.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	code, found := regexp.MustCompile(`^[a-z_]+:[A-Za-z_:]*$`), 0
	ast.Inspect(file, func(n ast.Node) bool {
		literal, ok := n.(*ast.BasicLit)
		if !ok || literal.Kind != token.STRING {
			return true
		}
		text, err := strconv.Unquote(literal.Value)
		if err != nil || !code.MatchString(text) {
			return true
		}
		found++
		for _, d := range decisions() {
			if strings.HasPrefix(d.By, text) {
				return true
			}
		}
		t.Errorf("the code %s is in no decision of this test: add one, and words for it", text)
		return true
	})
	if found < 9 {
		t.Errorf("found %d codes in decide.go, want them all", found)
	}
}

// A developer who adds a reason finds here that the page of a job has no words for it.
func TestReasons_AllHaveWords(t *testing.T) {
	for _, r := range retry.Reasons() {
		v := View{Detail: history.Detail{Job: job.Job{State: job.Discarded, DeadLetter: job.DeadLetterStored, Reason: r, Attempts: 1}}}
		if said := whyEnded(v); said == "" || said == string(r) {
			t.Errorf("the page of a job that ended for %s says %q", r, said)
		}
	}
}
