package codec_test

import (
	"testing"
	"time"

	"redrive/internal/source"
	"redrive/internal/source/codec"
)

// TestAsynq_PutsAnotherPayloadWhereAsynqHasIt compares with the messages that asynq itself
// makes: fields in their order, and no field for a payload that is empty.
func TestAsynq_PutsAnotherPayloadWhereAsynqHasIt(t *testing.T) {
	const rest = "\x1a\x01i\"\x06orders(\x02" // its id, its queue and two retries
	c, _ := codec.Get("asynq")
	for name, raw := range map[string]string{
		"another":  "\n\x06charge\x12\x07{\"n\":1}" + rest,
		"none":     "\n\x06charge" + rest,
		"repeated": "\n\x06charge\x12\x01x\x12\x01y" + rest,
	} {
		run := codec.Run{Mode: source.Once, Now: time.Now(), Payload: []byte(`{"n":10}`)}
		got, err := c.Next([]byte(raw), run)
		if want := "\n\x06charge\x12\x08{\"n\":10}" + rest; err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	for raw, payload := range map[string]string{"\n\x06charge": "{", "no task": "{}", "": "{}"} {
		if got, err := c.Next([]byte(raw), codec.Run{Mode: source.Once, Payload: []byte(payload)}); err == nil {
			t.Errorf("%q became %q", raw, got)
		}
	}
}
