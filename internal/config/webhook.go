package config

import (
	"bytes"
	"net/url"
	"os"
	"strings"

	"redrive/internal/clip"
	"redrive/internal/httpclient"
	"redrive/internal/webhook"
)

const (
	maxAttempts = 10      // requests for one dead letter
	maxSecret   = 4 << 10 // bytes
)

// Webhook is where a queue forwards its dead letters.
type Webhook struct {
	URL    string
	Secret Secret // with which each request is signed
	webhook.Sending
}

// Secret is a text that no log and no error shows.
type Secret = httpclient.Secret

// Webhook is where a queue forwards its dead letters; ok is false when it keeps
// them.
func (c *Config) Webhook(queue string) (w Webhook, ok bool) {
	c = c.now()
	if w := c.queues[queue].webhook; w != nil {
		return *w, true
	}

	return Webhook{}, false
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
	asks := v // for more than fits
	tries := func(read func(value) error) func(value) error {
		return func(v value) error {
			asks = v
			return read(v)
		}
	}
	fields := secretFields(&secrets)
	fields["url"] = into(&w.URL, webhookURL)
	fields["timeout"] = tries(into(&w.Timeout, positive))

	fields["attempts"] = tries(into(&w.Attempts, attempts))
	err = v.fields(fields)
	switch {
	case err != nil:
		return w, err
	case w.URL == "":
		return w, v.wrong("needs a url, for example https://example.org/dead-letters")
	case len(secrets) != 1:
		return w, v.wrong("needs exactly one of secret, secret_env and secret_file")
	case !w.Fits():
		return w, asks.wrong("%d attempts of %v each and the pauses between them, up to %v, take longer than the %v "+
			"allowed for a dead letter; lower timeout or attempts",
			w.Attempts, w.Timeout, w.Pauses(), webhook.Deadline)
	}

	w.Secret = secrets[0]

	return w, nil
}

// secretFields read the three ways in which a secret can be written.
func secretFields(all *[]Secret) map[string]func(value) error {
	secret := func(read func(value) (string, error)) func(value) error {
		return func(v value) error {
			text, err := read(v)
			if err == nil && strings.TrimSpace(text) == "" {
				err = v.wrong("the secret is empty or blank")
			}

			*all = append(*all, httpclient.NewSecret(text))

			return err
		}
	}

	return map[string]func(value) error{
		"secret": secret(value.hidden), "secret_env": secret(secretEnv), "secret_file": secret(secretFile),
	}
}

// webhookURL never repeats what was written: there may be credentials in it.
func webhookURL(v value) (string, error) {
	s, err := v.hidden()
	if err != nil {
		return "", err
	}

	u, err := url.Parse(s)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.Fragment != "" {
		return "", v.wrong("is not an address such as https://example.org/dead-letters")
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
		err = v.unset(name)
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
		return "", v.missing("%q is not a readable file of at most %d bytes", clip.Text(name, 200), maxSecret)
	}

	data, err := os.ReadFile(name)
	if err != nil {
		return "", v.missing("%v", err)
	}

	return string(bytes.TrimRight(data, "\r\n")), nil
}
