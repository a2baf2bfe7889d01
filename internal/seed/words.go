package seed

import "math/rand/v2"

const (
	queues = 8
	types  = 40
)

func queue(n int) string {
	return [queues]string{"orders", "payments", "email", "sms", "reports", "search", "imports", "ledger"}[n]
}

func nouns() []string {
	return []string{"order", "invoice", "parcel", "receipt", "refund", "report", "product", "account", "coupon", "review"}
}

func verbs() []string { return []string{"send", "render", "import", "sync"} }

func names() []string {
	return []string{"ines", "tomas", "yuki", "amara", "lars", "noor", "miguel", "sofia", "hana", "emeka", "olga", "pierre"}
}

// cause is a way to fail: a class, and a message with a number that differs.
type cause struct{ class, message string }

func causes() []cause {
	return []cause{
		{"upstream.unavailable", "POST https://api.paylane.example/v2/captures/%d: 503 Service Unavailable"},
		{"upstream.rate_limited", "GET https://rates.example/v1/quotes/%d: 429 Too Many Requests"},
		{"upstream.timeout", "POST https://parcels.example/labels/%d: context deadline exceeded after 10s"},
		{"smtp.Error", "451 4.7.1 message %d: recipient address rejected, try again later"},
		{"sql.Deadlock", "transaction %d was chosen as the deadlock victim"},
		{"validation.payload_invalid", "lines[%d].qty: a string stands where a number is expected"},
		{"panic", "runtime error: index out of range [%d] with length 0"},
		{"storage.full", "write /var/data/exports/%d.csv: no space left on device"},
		{"auth.expired", "the token of tenant %d ended"},
		{"inventory.missing", "product MK-%d is not in any warehouse"},
		{"dns.failure", "lookup shop-%d.internal: no such host"},
		{"tls.handshake", "connection %d: remote error: tls: handshake failure"},
	}
}

func pick(random *rand.Rand, words []string) string { return words[random.IntN(len(words))] }
