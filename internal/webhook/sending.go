package webhook

import (
	"time"

	"redrive/internal/retry"
)

// Deadline is what one dead letter has to leave the house: for all its
// tries and the pauses between them. It is less than a person waits for the
// answer who sends a letter again.
const Deadline = 24 * time.Second

// Sending is how patiently a dead letter is sent to a webhook.
type Sending struct {
	Timeout  time.Duration // of one try
	Attempts int           // tries for one letter
}

// DefaultSending gives a receiver that hangs all its tries.
func DefaultSending() Sending { return Sending{7 * time.Second, 3} }

// Pause is what follows the try n, spread by random.
func (Sending) Pause(n int, random func() float64) time.Duration {
	return retry.Policy{
		Strategy: retry.Exponential, InitialInterval: 500 * time.Millisecond, Coefficient: 2,
		MaxInterval: 10 * time.Second, Jitter: retry.Jitter{Low: 0.5, High: 1.5},
	}.Delay(n, random).Final
}

// Pauses is the longest that the pauses take together.
func (f Sending) Pauses() (all time.Duration) {
	for n := 1; n < f.Attempts; n++ {
		all += f.Pause(n, func() float64 { return 1 })
	}
	return all
}

// Fits reports whether every try has its time within what a letter has.
func (f Sending) Fits() bool {
	return f.Timeout <= (Deadline-f.Pauses())/time.Duration(f.Attempts)
}
