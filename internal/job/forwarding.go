package job

import (
	"time"

	"redrive/internal/retry"
)

// ForwardWithin is what one dead letter has to leave the house: for all its
// tries and the pauses between them. It is less than a person waits for the
// answer who sends a letter again.
const ForwardWithin = 24 * time.Second

// Forwarding is how patiently a dead letter is sent to a webhook.
type Forwarding struct {
	Timeout  time.Duration // of one try
	Attempts int           // tries for one letter
}

// DefaultForwarding gives a receiver that hangs all its tries.
func DefaultForwarding() Forwarding { return Forwarding{7 * time.Second, 3} }

// Pause is what follows the try n, spread by random.
func (Forwarding) Pause(n int, random func() float64) time.Duration {
	return retry.Policy{
		Strategy: retry.Exponential, InitialInterval: 500 * time.Millisecond, Coefficient: 2,
		MaxInterval: 10 * time.Second, Jitter: retry.Jitter{Low: 0.5, High: 1.5},
	}.Delay(n, random).Final
}

// Pauses is the longest that the pauses take together.
func (f Forwarding) Pauses() (all time.Duration) {
	for n := 1; n < f.Attempts; n++ {
		all += f.Pause(n, func() float64 { return 1 })
	}
	return all
}

// Fits reports whether every try has its time within what a letter has.
func (f Forwarding) Fits() bool {
	return f.Timeout <= (ForwardWithin-f.Pauses())/time.Duration(f.Attempts)
}
