package config

import (
	"bytes"
	"fmt"
	"io"
	"net/url"
	"os"
	"time"

	"redrive/internal/clip"
	"redrive/internal/retention"
	"redrive/internal/webhook"
)

const (
	defaultAge   = 180 * 24 * time.Hour // of a dead letter, as the Open Job Spec has it
	defaultCount = 10_000
	defaultTrash = 7 * 24 * time.Hour // of a discarded job

	maxAttempts = 10
	maxSecret   = 4 << 10
)

// Webhook is where a queue forwards its dead letters.
type Webhook struct {
	URL    string
	Secret Secret // with which each request is signed
	webhook.Sending
}

// Secret is a text that no log and no error shows.
type Secret struct{ text string }

// Reveal returns the text.
func (s Secret) Reveal() string { return s.text }

// Format hides the text from package fmt.
func (Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, "(secret)") }

// MarshalText hides the text from everything that writes JSON or logs.
func (Secret) MarshalText() ([]byte, error) { return []byte("(secret)"), nil }

// Webhook is where a queue forwards its dead letters; ok is false when it keeps
// them.
func (c *Config) Webhook(queue string) (w Webhook, ok bool) {
	if w := c.queues[queue].webhook; w != nil {
		return *w, true
	}
	return Webhook{}, false
}

// Retention bounds the dead-letter queue and the trash.
func (c *Config) Retention() retention.Limits { return c.retention }

// readDeadLetter reads the section dead_letter: how long, and how many, dead
// letters are kept in all queues.
func (c *Config) readDeadLetter(v value) error {
	return v.fields(map[string]func(value) error{"retention": func(v value) error {
		return v.fields(map[string]func(value) error{
			"age": into(&c.retention.Age, age),
			"count": into(&c.retention.Count, func(v value) (int64, error) {
				n, err := v.integer()
				if err == nil && n < 1 {
					err = v.wrong("%d is not a number of dead letters, at least 1", n)
				}
				return int64(n), err
			}),
		})
	}})
}

// readTrash reads the section trash: how long discarded jobs can be restored.
func (c *Config) readTrash(v value) error {
	return v.fields(map[string]func(value) error{"age": into(&c.retention.Trash, age)})
}

// readDeadLetter reads what one queue does with its dead letters: keep them,
// forward them, or have none.
func (q *queue) readDeadLetter(v value) error {
	err := v.fields(map[string]func(value) error{
		"enabled": optional(&q.deadLetters, value.boolean),
		"webhook": optional(&q.webhook, readWebhook),
	})
	if err == nil && q.webhook != nil && q.deadLetters != nil && !*q.deadLetters {
		err = v.wrong("is not enabled, so nothing can be forwarded; remove enabled or webhook")
	}
	return err
}

// readWebhook reads where dead letters are forwarded. What is wrong with the
// numbers is said at the field that was written last, because defaults stand
// nowhere in the file.
func readWebhook(v value) (w Webhook, err error) {
	w = Webhook{Sending: webhook.DefaultSending()}
	if err := v.mapping(); err != nil {
		return w, err
	}
	var secrets []Secret
	secret := func(read func(value) (string, error)) func(value) error {
		return func(v value) error {
			text, err := read(v)
			if err == nil && text == "" {
				err = v.wrong("the secret is empty")
			}
			secrets = append(secrets, Secret{text})
			return err
		}
	}
	asks := v // for more than fits
	tries := func(read func(value) error) func(value) error {
		return func(v value) error {
			asks = v
			return read(v)
		}
	}
	err = v.fields(map[string]func(value) error{
		"url":         into(&w.URL, webhookURL),
		"secret":      secret(value.hidden),
		"secret_env":  secret(secretEnv),
		"secret_file": secret(secretFile),
		"timeout":     tries(into(&w.Timeout, positive)),
		"attempts":    tries(into(&w.Attempts, attempts)),
	})
	switch {
	case err != nil:
		return w, err
	case w.URL == "":
		return w, v.wrong("needs a url, as https://example.org/dead-letters")
	case len(secrets) != 1:
		return w, v.wrong("needs exactly one of secret, secret_env and secret_file, to sign with")
	case !w.Fits():
		return w, asks.wrong("tries: %d, of %v each, and the pauses between them, up to %v, do not fit into the %v "+
			"that a dead letter has; lower timeout or attempts",
			w.Attempts, w.Timeout, w.Pauses(), webhook.Deadline)
	}
	w.Secret = secrets[0]
	return w, nil
}

// webhookURL never repeats what was written: there may be credentials in it.
func webhookURL(v value) (string, error) {
	s, err := v.hidden()
	if err != nil {
		return "", err
	}
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.Fragment != "" {
		return "", v.wrong("is not an address as https://example.org/dead-letters")
	}
	return s, nil
}

// attempts reads how many requests are made for one dead letter.
func attempts(v value) (int, error) { return v.upTo(maxAttempts, "requests") }

// secretEnv reads a secret from the environment, by the name of a variable.
func secretEnv(v value) (string, error) {
	name, err := v.text()
	if err != nil {
		return "", err
	}
	text := os.Getenv(name)
	if text == "" {
		err = v.wrong("the environment has no %q, or it is empty", clip.Text(name, 64))
	}
	return text, err
}

// secretFile reads a file without the line break at its end.
func secretFile(v value) (string, error) {
	name, err := v.text()
	if err != nil {
		return "", err
	}
	if info, err := os.Stat(name); err != nil || !info.Mode().IsRegular() || info.Size() > maxSecret {
		return "", v.wrong("%q is no file of at most %d bytes that can be read", clip.Text(name, 200), maxSecret)
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return "", v.wrong("%v", err)
	}
	return string(bytes.TrimRight(data, "\r\n")), nil
}

// age reads how long dead letters are kept. They are pruned once a minute.
func age(v value) (time.Duration, error) {
	d, err := positive(v)
	if err == nil && d < time.Minute {
		err = v.wrong("%v is shorter than a minute", d)
	}
	return d, err
}
