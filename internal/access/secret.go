package access

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base32"
	"encoding/base64"
	"strings"
)

// tokenPrefix begins every token, so that scanners for leaked secrets know it.
const tokenPrefix = "redrive"

const secretLen = 32 // bytes: 256 bits

// NewToken makes the id of a token, the text that its owner keeps, and the hash
// that the database keeps. The text is never seen again.
func NewToken() (id, text string, hash []byte) {
	var short [6]byte
	rand.Read(short[:]) // never fails
	id = strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(short[:]))
	secret := newSecret()
	return id, tokenPrefix + "_" + id + "_" + secret, digest(secret)
}

// ParseToken splits the text of a token into its id and the hash of its
// secret; ok is false for anything that is no token.
func ParseToken(text string) (id string, hash []byte, ok bool) {
	rest, ok := strings.CutPrefix(text, tokenPrefix+"_")
	if !ok {
		return "", nil, false
	}
	id, secret, ok := strings.Cut(rest, "_") // the secret may have one, too
	if !ok || id == "" || !isSecret(secret) {
		return "", nil, false
	}
	return id, digest(secret), true
}

// NewSession makes the secret of a session, for its cookie, and the hash that
// the database keeps.
func NewSession() (text string, hash []byte) {
	text = newSecret()
	return text, digest(text)
}

// ParseSession returns the hash under which a session is kept; ok is false for
// anything that cannot be one.
func ParseSession(text string) (hash []byte, ok bool) {
	if !isSecret(text) {
		return nil, false
	}
	return digest(text), true
}

// SameHash compares without telling by its time how much is the same. Nothing
// is the same as an empty hash.
func SameHash(a, b []byte) bool {
	return len(a) == sha256.Size && subtle.ConstantTimeCompare(a, b) == 1
}

func newSecret() string {
	var secret [secretLen]byte
	rand.Read(secret[:]) // never fails
	return base64.RawURLEncoding.EncodeToString(secret[:])
}

func isSecret(text string) bool {
	data, err := base64.RawURLEncoding.Strict().DecodeString(text)
	return err == nil && len(data) == secretLen
}

func digest(text string) []byte {
	sum := sha256.Sum256([]byte(text))
	return sum[:]
}
