package webhook_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"
)

// verify is what a receiver does before it believes a request: it compares the
// signature in constant time, and refuses a timestamp that is not current, so
// that no attacker can send an old request again.
func verify(r *http.Request, secret string) (body []byte, err error) {
	body, err = io.ReadAll(io.LimitReader(r.Body, 8<<20))
	if err != nil {
		return nil, err
	}
	timestamp := r.Header.Get("Redrive-Timestamp")
	mac := hmac.New(sha256.New, []byte(secret))
	fmt.Fprintf(mac, "%s.%s", timestamp, body)
	want := "sha256=" + hex.EncodeToString(mac.Sum(nil))
	if !hmac.Equal([]byte(want), []byte(r.Header.Get("Redrive-Signature"))) {
		return nil, errors.New("the signature is not that of the body")
	}
	seconds, err := strconv.ParseInt(timestamp, 10, 64)
	if err != nil || time.Since(time.Unix(seconds, 0)).Abs() > 5*time.Minute {
		return nil, errors.New("the request is too old")
	}
	return body, nil
}

// A receiver verifies a request, takes each key once, and answers 204.
func Example_receiver() {
	seen := map[string]bool{} // of a real receiver, in its database
	_ = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := verify(r, "the queue's secret")
		if err != nil {
			http.Error(w, err.Error(), http.StatusUnauthorized)
			return
		}
		if key := r.Header.Get("Idempotency-Key"); !seen[key] {
			seen[key] = true
			fmt.Printf("%s failed: %s\n", key, body)
		}
		w.WriteHeader(http.StatusNoContent)
	})
}
