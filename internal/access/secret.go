package access

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base32"
	"encoding/base64"
	"fmt"
	"runtime"
	"strings"

	"golang.org/x/crypto/argon2"
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

// The cost of one password: 19 MiB and two passes, as OWASP has it.
const (
	memory  = 19 << 10 // KiB
	passes  = 2
	threads = 1
	saltLen = 16
	keyLen  = 32
)

// The most that a stored hash may ask for: a database that another program wrote must not
// take the machine's memory.
const (
	maxMemory = 256 << 10 // KiB
	maxPasses = 16
)

// Passwords hashes and checks passwords, no more of them at once than the
// machine has processors: each takes 19 MiB.
type Passwords struct {
	places chan struct{}
	decoy  hashed // is checked when there is no user
}

// NewPasswords returns the one checker of a program.
func NewPasswords() *Passwords {
	decoy := hashed{memory: memory, passes: passes, threads: threads, salt: make([]byte, saltLen), key: make([]byte, keyLen)}
	rand.Read(decoy.salt) // never fails
	rand.Read(decoy.key)
	return &Passwords{make(chan struct{}, runtime.NumCPU()), decoy}
}

// Hash makes a password into what is kept of it. It waits for its turn until
// the end of ctx.
func (p *Passwords) Hash(ctx context.Context, password string) (string, error) {
	if err := CheckPassword(password); err != nil {
		return "", err
	}

	h := hashed{memory: memory, passes: passes, threads: threads, salt: make([]byte, saltLen)}
	rand.Read(h.salt)
	key, err := p.derive(ctx, h, keyLen, password)
	h.key = key

	return h.String(), err
}

// Match reports whether the password is the one that encoded was made of. It
// takes as long when encoded is empty or cannot be read, which matches nothing:
// no client learns from the time whether a user exists.
func (p *Passwords) Match(ctx context.Context, encoded, password string) (bool, error) {
	h, ok := parseHash(encoded)
	if !ok || len(password) > maxPassword {
		_, err := p.derive(ctx, p.decoy, keyLen, password[:min(len(password), maxPassword)])
		return false, err
	}

	key, err := p.derive(ctx, h, uint32(len(h.key)), password)

	return err == nil && subtle.ConstantTimeCompare(key, h.key) == 1, err
}

func (p *Passwords) derive(ctx context.Context, h hashed, length uint32, password string) ([]byte, error) {
	select {
	case p.places <- struct{}{}:
		defer func() { <-p.places }()
	case <-ctx.Done():
		return nil, fmt.Errorf("wait to check a password: %w", ctx.Err())
	}

	return argon2.IDKey([]byte(password), h.salt, h.passes, h.memory, h.threads, length), nil
}

// hashed is a password as it is kept, with what it was made with.
type hashed struct {
	memory, passes uint32
	threads        uint8
	salt, key      []byte
}

func (h hashed) String() string {
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, h.memory, h.passes, h.threads,
		base64.RawStdEncoding.EncodeToString(h.salt), base64.RawStdEncoding.EncodeToString(h.key))
}

// parseHash reads what String wrote. It reports false for whatever is too weak to
// have come from there, or too costly.
func parseHash(encoded string) (h hashed, ok bool) {
	part := strings.Split(encoded, "$")
	if len(part) != 6 {
		return h, false
	}

	_, err := fmt.Sscanf(part[3], "m=%d,t=%d,p=%d", &h.memory, &h.passes, &h.threads)
	var noSalt, noKey error

	h.salt, noSalt = base64.RawStdEncoding.Strict().DecodeString(part[4])
	h.key, noKey = base64.RawStdEncoding.Strict().DecodeString(part[5])
	if err != nil || noSalt != nil || noKey != nil {
		return h, false
	}

	return h, h.memory >= 8<<10 && h.memory <= maxMemory && h.passes >= 1 && h.passes <= maxPasses && h.threads >= 1 &&
		len(h.salt) >= saltLen && len(h.key) >= keyLen && len(h.key) <= 64 && h.String() == encoded
}
