package demo

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"time"

	"redrive/internal/job"
	"redrive/internal/retry"
)

// kind is a type of job in the demo's shop.
type kind struct {
	typ, queue string
	share      float64          // of all jobs
	work       [2]time.Duration // shortest and longest
	payload    func(n int, r *rand.Rand) string

	// How it fails.
	fault string  // the fault that breaks it, or empty
	live  float64 // how often it fails while broken
	// past is how often it failed that long ago, for the history.
	past func(ago time.Duration) float64
	fail func(r *rand.Rand, j job.Job) ending
}

// ending is how an attempt fails; the zero ending succeeds.
type ending struct {
	outcome job.Outcome
	failure *job.Failure
}

// took is how long an attempt works, by chance.
func (k kind) took(r *rand.Rand) time.Duration {
	return k.work[0] + time.Duration(r.Int64N(int64(k.work[1]-k.work[0])+1))
}

// again is how often a run fails that began so long ago: a replay hardly ever.
func (k kind) again(ago time.Duration, run int) float64 {
	if run > 1 {
		return k.past(ago) / 4
	}
	return k.past(ago)
}

// faults are the switches of the page, all on: the demo begins with something
// to look at.
func faults() []Fault {
	return []Fault{
		{"provider", "Payment provider", "Paylane answers 503 to every capture.", true},
		{"mailer", "Flaky mailer", "The mail server turns 30 % of the receipts away.", true},
		{"sms", "Rate-limited SMS", "The SMS gateway answers 429 and names a wait.", true},
		{"reports", "Slow reports", "Rendering takes longer than its time limit of 3 s.", true},
		{"imports", "Poison payload", "A partner sends quantities as words.", true},
		{"images", "Panic", "A thumbnail of an empty document panics.", true},
		{"crm", "A secret in a payload", "The CRM refuses a key that stands in the payload, and repeats it.", true},
		{"warehouse", "Outlet's warehouse", "A Laravel queue, attached as a source, cannot reserve its stock.", true},
		{"ledger", "Refused letters", "The ledger is locked, and the archive that takes its dead letters is full.", true},
	}
}

// between reports whether something happened in a part of the day before the
// demo.
func between(ago, from, to time.Duration) bool { return ago >= to && ago < from }

// kinds are the types of jobs in the shop; their shares add up to 1.
func kinds() []kind {
	return []kind{
		searchIndex(), emailReceipt(), paymentsCapture(), smsSend(), imageThumbnail(), orderImport(), reportRender(), crmPush(), ledgerPost(),
	}
}

// searchIndex never fails: most jobs of a shop do not.
func searchIndex() kind {
	return kind{
		typ: "search.index", queue: "search", share: 0.34, work: [2]time.Duration{4 * time.Millisecond, 30 * time.Millisecond},
		payload: func(n int, r *rand.Rand) string {
			return fmt.Sprintf(`{"document":"product-%d","revision":%d}`, n, 1+r.IntN(9))
		},
	}
}

// emailReceipt fails now and then and succeeds when it is tried again.
func emailReceipt() kind {
	return kind{
		typ: "email.receipt", queue: "email", share: 0.28, work: [2]time.Duration{40 * time.Millisecond, 240 * time.Millisecond},
		payload: func(n int, r *rand.Rand) string {
			return fmt.Sprintf(`{"to":"%s@brightmail.example","template":"receipt-v4","order_id":%d}`, pick(r, people()), n)
		},

		fault: "mailer", live: 0.3, past: func(time.Duration) float64 { return 0.3 },
		fail: failure("smtp.Error", func(_ *rand.Rand, j job.Job) string {
			return fmt.Sprintf("451 4.7.1 <%s>: Recipient address rejected: try again later", recipient(j))
		}, traceMail, retry.Answer{}),
	}
}

// recipient is whom a receipt goes to.
func recipient(j job.Job) string {
	var receipt struct{ To string }
	if err := json.Unmarshal(j.Payload, &receipt); err != nil {
		return "unknown" // the payload was edited before a replay
	}

	return receipt.To
}

// paymentsCapture fails for as long as the provider is down, so its jobs use up
// their attempts.
func paymentsCapture() kind {
	return kind{
		typ: "payments.capture", queue: "payments", share: 0.16, work: [2]time.Duration{80 * time.Millisecond, 600 * time.Millisecond},
		payload: func(n int, r *rand.Rand) string {
			return fmt.Sprintf(`{"order_id":%d,"amount":%d,"currency":"EUR","provider":"paylane",`+
				`"lines":[{"sku":"TR-%d","qty":%d}],"capture":true,"coupon":null}`,
				n, 990+r.IntN(20_000), 100+r.IntN(900), 1+r.IntN(4))
		},

		fault: "provider", live: 1, past: func(ago time.Duration) float64 {
			if ago < 25*time.Minute {
				return 1
			}
			return 0.01
		},
		fail: failure("upstream.unavailable", func(*rand.Rand, job.Job) string {
			return "POST https://api.paylane.example/v2/captures: 503 Service Unavailable"
		}, tracePay, retry.Answer{}),
	}
}

// smsSend is told how long to wait, and the policy obeys.
func smsSend() kind {
	return kind{
		typ: "sms.send", queue: "sms", share: 0.08, work: [2]time.Duration{30 * time.Millisecond, 120 * time.Millisecond},
		payload: func(n int, r *rand.Rand) string {
			return fmt.Sprintf(`{"to":"+49 151 %07d","text":"Your parcel %d arrives today"}`, r.IntN(10_000_000), n)
		},

		fault: "sms", live: 0.6, past: func(ago time.Duration) float64 {
			if between(ago, 4*time.Hour, 3*time.Hour) {
				return 0.95
			}
			return 0.2
		},
		fail: failure("sms.RateLimited", func(*rand.Rand, job.Job) string {
			return "POST https://sms.example/messages: 429 Too Many Requests"
		}, "", retry.Answer{RetryAfter: new(5 * time.Second)}),
	}
}

// imageThumbnail panics, with a trace that shows where.
func imageThumbnail() kind {
	return kind{
		typ: "image.thumbnail", queue: "images", share: 0.06, work: [2]time.Duration{60 * time.Millisecond, 500 * time.Millisecond},
		payload: func(n int, r *rand.Rand) string {
			return fmt.Sprintf(`{"document":"upload-%d.pdf","page":%d,"width":320}`, n, 1+r.IntN(12))
		},

		fault: "images", live: 0.15, past: func(ago time.Duration) float64 {
			if between(ago, 6*time.Hour, 5*time.Hour) {
				return 1
			}
			return 0.04
		},
		fail: func(_ *rand.Rand, j job.Job) ending {
			return ending{job.Panicked, &job.Failure{
				ErrorInfo: job.ErrorInfo{Type: "panic", Message: fmt.Sprintf("runtime error: index out of range [%d] with length 0", thumbnailPage(j))},
				Trace:     tracePanic,
			}}
		},
	}
}

// orderImport fails permanently: no repetition mends a payload.
func orderImport() kind {
	return kind{
		typ: "order.import", queue: "imports", share: 0.03, work: [2]time.Duration{20 * time.Millisecond, 90 * time.Millisecond},
		payload: func(n int, r *rand.Rand) string {
			return fmt.Sprintf(`{"partner":"northwind","order_id":%d,"lines":[{"sku":"MK-%d","qty":"%s"}]}`,
				n, 100+r.IntN(900), pick(r, []string{"three", "two", "a dozen"}))
		},

		fault: "imports", live: 0.5, past: func(time.Duration) float64 { return 0.25 },
		fail: failure("validation.payload_invalid", func(*rand.Rand, job.Job) string {
			return "lines[0].qty: a string stands where a number is expected"
		}, "", retry.Answer{}),
	}
}

// reportRender runs into its time limit.
func reportRender() kind {
	return kind{
		typ: "report.render", queue: "reports", share: 0.02, work: [2]time.Duration{300 * time.Millisecond, 2400 * time.Millisecond},
		payload: func(n int, r *rand.Rand) string {
			return fmt.Sprintf(`{"report":"%s","week":%d}`, pick(r, []string{"sales", "returns", "stock"}), 1+n%52)
		},

		fault: "reports", live: 0.5, past: func(ago time.Duration) float64 {
			if between(ago, 10*time.Hour, 9*time.Hour) {
				return 0.9
			}
			return 0.2
		},
		fail: func(*rand.Rand, job.Job) ending {
			return ending{job.TimedOut, &job.Failure{ErrorInfo: job.ErrorInfo{
				Type: "timeout", Message: "ran longer than its ttr, 3s"}}}
		},
	}
}

// crmPush carries a secret in its payload, and its upstream repeats it in the
// error. No page shows it.
func crmPush() kind {
	return kind{
		typ: "crm.push", queue: "crm", share: 0.02, work: [2]time.Duration{30 * time.Millisecond, 180 * time.Millisecond},
		payload: func(n int, r *rand.Rand) string {
			return fmt.Sprintf(`{"contact":%d,"email":"%s@brightmail.example","api_key":"%s","consent":true}`, n, pick(r, people()), crmKey)
		},

		fault: "crm", live: 0.6, past: func(ago time.Duration) float64 {
			if ago < 6*time.Hour {
				return 0.4
			}
			return 0.02
		},
		fail: failure("crm.Unauthorized", func(*rand.Rand, job.Job) string {
			return "PUT https://crm.example/contacts: 401 Unauthorized: api_key=" + crmKey + " was revoked"
		}, traceCRM, retry.Answer{}),
	}
}

// ledgerPost leaves dead letters that are forwarded and refused.
func ledgerPost() kind {
	return kind{
		typ: "ledger.post", queue: "ledger", share: 0.01, work: [2]time.Duration{20 * time.Millisecond, 60 * time.Millisecond},
		payload: func(n int, r *rand.Rand) string {
			return fmt.Sprintf(`{"entry":%d,"account":"%d","amount":%d}`, n, 1000+r.IntN(9000), r.IntN(100_000))
		},

		fault: "ledger", live: 0.3, past: func(ago time.Duration) float64 {
			if ago < 3*time.Hour {
				return 0.25
			}
			return 0
		},
		fail: failure("ledger.Locked", func(*rand.Rand, job.Job) string {
			return "the period 2026-02 is locked by the month-end closing"
		}, "", retry.Answer{}),
	}
}

// failure makes the fail of a kind that returns an ordinary error.
func failure(typ string, message func(*rand.Rand, job.Job) string, trace string, answer retry.Answer) func(*rand.Rand, job.Job) ending {
	return func(r *rand.Rand, j job.Job) ending {
		return ending{job.Failed, &job.Failure{
			ErrorInfo: job.ErrorInfo{Type: typ, Message: message(r, j)}, Trace: trace, Answer: answer,
		}}
	}
}

func pick(r *rand.Rand, words []string) string { return words[r.IntN(len(words))] }

func people() []string { return []string{"ines", "tomas", "yuki", "amara", "lars", "noor"} }

// crmKey is made up, and looks like what must never be seen.
const crmKey = "sk_demo_51f0c2a9e7b44d6f"

const (
	tracePay = `paylane: 503 Service Unavailable
  body: {"error":"maintenance","until":"14:30"}
payments.(*Client).Capture
	shop/payments/client.go:142
payments.HandleCapture
	shop/payments/capture.go:58`
	traceMail = `smtp: 451 4.7.1 try again later
mail.(*Session).Rcpt
	shop/mail/session.go:77
mail.SendReceipt
	shop/mail/receipt.go:31`
	traceCRM = `crm.(*Client).Put
	shop/crm/client.go:88
crm.HandlePush
	shop/crm/push.go:23`
)
