package access

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"runtime"
	"strings"

	"golang.org/x/crypto/argon2"
)

// The cost of one password: 19 MiB and two passes, as OWASP has it.
const (
	memory  = 19 << 10 // KiB
	passes  = 2
	threads = 1
	saltLen = 16
	keyLen  = 32
)

// The most that a stored hash may ask for: a database that somebody else wrote
// must not take the machine's memory.
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
// nobody learns from the time whether a user exists.
func (p *Passwords) Match(ctx context.Context, encoded, password string) (bool, error) {
	h, err := parseHash(encoded)
	if known := err == nil && len(password) <= maxPassword; !known {
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

// parseHash reads what String wrote. Whatever is too weak to have come from
// there, or too costly, is an error.
func parseHash(encoded string) (h hashed, err error) {
	part := strings.Split(encoded, "$")
	if len(part) != 6 || part[0] != "" || part[1] != "argon2id" || part[2] != fmt.Sprintf("v=%d", argon2.Version) {
		return h, errors.New("this is no argon2id hash")
	}
	if _, err := fmt.Sscanf(part[3], "m=%d,t=%d,p=%d", &h.memory, &h.passes, &h.threads); err != nil {
		return h, fmt.Errorf("the parameters of a hash: %w", err)
	}
	if h.salt, err = base64.RawStdEncoding.Strict().DecodeString(part[4]); err != nil {
		return h, fmt.Errorf("the salt of a hash: %w", err)
	}
	if h.key, err = base64.RawStdEncoding.Strict().DecodeString(part[5]); err != nil {
		return h, fmt.Errorf("the key of a hash: %w", err)
	}
	if h.memory < 8<<10 || h.memory > maxMemory || h.passes < 1 || h.passes > maxPasses || h.threads < 1 ||
		len(h.salt) < saltLen || len(h.key) < keyLen || len(h.key) > 64 || h.String() != encoded {
		return h, errors.New("the parameters of a hash are out of bounds")
	}
	return h, nil
}
