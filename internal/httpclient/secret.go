package httpclient

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"
)

// Secret is a text that no log and no error shows.
type Secret struct{ text string }

// NewSecret returns a secret.
func NewSecret(text string) Secret { return Secret{text} }

// Reveal returns the text.
func (s Secret) Reveal() string { return s.text }

// Format hides the text from package fmt.
func (Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, "(secret)") }

// MarshalText hides the text from everything that writes JSON or logs.
func (Secret) MarshalText() ([]byte, error) { return []byte("(secret)"), nil }

// Sign adds the time and a signature to a request: the HMAC-SHA256 of
// TIMESTAMP.BODY with the secret, in hex.
func Sign(request *http.Request, secret string, body []byte) {
	timestamp := strconv.FormatInt(time.Now().Unix(), 10)
	mac := hmac.New(sha256.New, []byte(secret))
	for _, part := range [][]byte{[]byte(timestamp), []byte("."), body} {
		mac.Write(part)
	}

	request.Header.Set("Redrive-Timestamp", timestamp)
	request.Header.Set("Redrive-Signature", "sha256="+hex.EncodeToString(mac.Sum(nil)))
}
