package preset

import (
	"errors"
	"fmt"
	"strings"
)

// AMQP is how a system keeps its dead letters in queues of RabbitMQ. The operator names
// these queues, because a look at a queue takes its messages out for a moment, which a
// queue with a consumer does not bear.
//
// A replay publishes the message with its properties and headers to the queue that it
// came from: the name of the dead-letter queue without the value suffix, where the system
// has such names; else the queue that the header x-death names; the value target before
// both. The value quorum allows looks at queues that count them, see amqpsource.
type AMQP struct {
	Type     []string `yaml:"type"`     // headers with the type of the job; the first that is there counts
	Lineage  []string `yaml:"lineage"`  // headers with an id that the job keeps through its runs; else the message id
	Class    []string `yaml:"class"`    // headers with the class of the error
	Message  []string `yaml:"message"`  // and its message
	Trace    []string `yaml:"trace"`    // and its trace
	Failures string   `yaml:"failures"` // a header that counts the attempts before the last one
	Due      string   `yaml:"due"`      // a header with the time before which a consumer does not run the job
	Expires  string   `yaml:"expires"`  // a header with a time after which the job is dropped; a replay clears one that has passed

	Drop  []string       `yaml:"drop"`  // headers that a replay leaves out, beside those of RabbitMQ itself
	Set   map[string]any `yaml:"set"`   // headers of a replay, where the message has them
	Fresh map[string]any `yaml:"fresh"` // and of one with fresh attempts
}

// Refuse and Allow are the values of quorum.
const (
	Refuse = "refuse"
	Allow  = "allow"
)

// check returns an error unless the settings name queues that this system can have.
func (*AMQP) check(s Settings) error {
	if len(s.Queues) == 0 {
		return errors.New("needs a field queues: the names of the dead-letter queues")
	}

	suffix := s.Values["suffix"]
	for _, q := range s.Queues {
		if work, ok := strings.CutSuffix(q, suffix); !ok || work == "" {
			return fmt.Errorf("%q is not the name of a dead-letter queue: it does not end with %s. Redrive never looks into work queues", q, suffix)
		}
	}

	if q := s.Values["quorum"]; q != Refuse && q != Allow {
		return fmt.Errorf("quorum is %q; use %s or %s", q, Refuse, Allow)
	}

	return nil
}
