package operationpage

import (
	"strconv"
	"time"

	"redrive/internal/operation"
)

// rateChoice is a rate that a preview offers, and when it would end.
type rateChoice struct {
	value string
	word  string
	left  time.Duration // 0: nobody knows
}

func rateChoices(pending int64) []rateChoice {
	all := []rateChoice{{"0", "as fast as it goes", 0}}
	for _, rate := range []int64{1, 5, 20, 100} {
		all = append(all, rateChoice{
			strconv.FormatInt(rate, 10), rateWords(float64(rate)), time.Duration(pending) * time.Second / time.Duration(rate),
		})
	}
	return all
}

// usualRate is what is chosen before a person chooses: small scopes at once,
// large ones at 20 a second.
func usualRate(pending int64) string {
	if pending > operation.CanaryAbove {
		return "20"
	}
	return "0"
}

// usualCanary is how many go first unless a person says otherwise.
func usualCanary(pending int64) string {
	if pending > operation.CanaryAbove {
		return strconv.Itoa(operation.UsualCanary)
	}
	return "0"
}
