package access_test

import (
	"context"
	"encoding/base64"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"redrive/internal/access"
)

func TestRole_MayDoWhatItsRowSays(t *testing.T) {
	table := map[access.Role][]access.Permission{
		access.Producer: {access.Public, access.Enqueue},
		access.Viewer:   {access.Public, access.View},
		access.Operator: {access.Public, access.View, access.Enqueue, access.Operate},
		access.Admin:    access.Permissions(),
		"":              {access.Public}, "root": {access.Public}, "ADMIN": {access.Public},
	}
	for role, may := range table {
		for _, p := range append(access.Permissions(), "", "everything") {
			if got, want := role.May(p), slices.Contains(may, p); got != want {
				t.Errorf("%q may %q: %v, want %v", role, p, got, want)
			}
		}
	}
	if got := access.Viewer.Stronger(access.Admin).Stronger("god").Stronger(access.Producer); got != access.Admin {
		t.Errorf("the strongest is %q", got)
	}
}

const secret = "correct horse battery"

func TestPasswords_MatchOnlyTheirOwn(t *testing.T) {
	p, ctx := access.NewPasswords(), t.Context()
	one, err := p.Hash(ctx, secret)
	if err != nil || !strings.HasPrefix(one, "$argon2id$v=19$m=19456,t=2,p=1$") {
		t.Fatalf("%q, %v", one, err)
	}
	two, err := p.Hash(ctx, secret)
	if err != nil || one == two {
		t.Errorf("the same password twice gives the same hash, %v", err)
	}
	if ok, err := p.Match(ctx, one, secret); !ok || err != nil {
		t.Errorf("the right password: %v, %v", ok, err)
	}
	for _, wrong := range []string{"", " ", secret + " ", strings.ToUpper(secret), strings.Repeat("x", 10_000)} {
		if ok, err := p.Match(ctx, one, wrong); ok || err != nil {
			t.Errorf("%.30q matches: %v, %v", wrong, ok, err)
		}
	}
}

// A hash that cannot be read, and that of no user, matches nothing.
func TestPasswords_WhatIsNoHashMatchesNothing(t *testing.T) {
	p, ctx := access.NewPasswords(), t.Context()
	good, err := p.Hash(ctx, secret)
	if err != nil {
		t.Fatal(err)
	}
	part := strings.Split(good, "$")
	empty := base64.RawStdEncoding.EncodeToString(nil)
	for _, encoded := range []string{
		"", " ", "x", secret, "$argon2id$", "$argon2i" + good[9:], strings.Replace(good, "v=19", "v=18", 1),
		strings.Replace(good, "t=2", "t=0", 1), strings.Replace(good, "m=19456", "m=1", 1), strings.Replace(good, "m=19456", "m=4194304", 1),
		strings.Replace(good, "p=1", "p=0", 1), strings.Replace(good, "t=2", "t=02", 1), good + "$", good + "\n", good[:len(good)-3],
		strings.Join(append(slices.Clone(part[:5]), empty), "$"),
	} {
		for _, password := range []string{secret, ""} {
			if ok, err := p.Match(ctx, encoded, password); ok || err != nil {
				t.Errorf("%q matches %q: %v, %v", encoded, password, ok, err)
			}
		}
	}
}

func TestPasswords_RefuseWhatIsNone(t *testing.T) {
	for _, password := range []string{"", "          ", "\t\n\t\n\t\n\t\n\t\n", "short", strings.Repeat("x", 257)} {
		if hash, err := access.NewPasswords().Hash(t.Context(), password); err == nil || hash != "" {
			t.Errorf("%.20q: %q, %v", password, hash, err)
		}
	}
}

// However many clients guess at once, no more memory is taken than for one guess for each
// processor; a client that has no patience leaves.
func TestPasswords_WaitForTheirTurn(t *testing.T) {
	p := access.NewPasswords()
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	var all sync.WaitGroup
	for range 8 * runtime.NumCPU() {
		all.Go(func() {
			if ok, err := p.Match(t.Context(), "", secret); ok || err != nil {
				t.Errorf("%v, %v", ok, err)
			}
		})
	}
	all.Wait()
	runtime.ReadMemStats(&after)
	if grown, bound := int64(after.Sys)-int64(before.Sys), int64(runtime.NumCPU()+4)*40<<20; grown > bound {
		t.Errorf("the process grew by %d MiB, at most %d are expected", grown>>20, bound>>20)
	}
	left, leave := context.WithCancel(t.Context())
	leave()
	for range 100 { // a select takes either way when both are open
		if _, err := p.Match(left, "", "x"); err != nil {
			return
		}
	}
	t.Error("the wait went on after the caller had left")
}

func TestToken_IsKeptAsItsHashOnly(t *testing.T) {
	id, text, hash := access.NewToken()
	gotID, gotHash, ok := access.ParseToken(text)
	if !ok || gotID != id || !access.SameHash(hash, gotHash) {
		t.Fatalf("%q reads as %q, %v", text, gotID, ok)
	}
	if !strings.HasPrefix(text, "redrive_"+id+"_") || strings.Contains(string(hash), text[len("redrive_"+id+"_"):]) {
		t.Errorf("token %q with hash %x", text, hash)
	}
	other, _, otherHash := access.NewToken()
	if other == id || access.SameHash(hash, otherHash) {
		t.Error("two tokens are the same")
	}
	for _, wrong := range []string{"", " ", "redrive_", "redrive__", "redrive_" + id, "redrive_" + id + "_", text + "x", text[:len(text)-1], "x" + text, " " + text, strings.ToUpper(text)} {
		if _, _, ok := access.ParseToken(wrong); ok {
			t.Errorf("%q is a token", wrong)
		}
	}
}

func TestSession_EmptyIsNone(t *testing.T) {
	text, hash := access.NewSession()
	if got, ok := access.ParseSession(text); !ok || !access.SameHash(hash, got) {
		t.Errorf("%q is no session", text)
	}
	for _, wrong := range []string{"", " ", text + "A", text[1:], "a b"} {
		if _, ok := access.ParseSession(wrong); ok {
			t.Errorf("%q is a session", wrong)
		}
	}
	if access.SameHash(nil, nil) || access.SameHash([]byte{}, []byte{}) || access.SameHash(hash, nil) || access.SameHash(nil, hash) {
		t.Error("nothing is the same as something")
	}
}

// stranger has never logged in.
func stranger() bool { return false }

func newLimiter() *access.Limiter {
	return access.NewLimiter(access.Tries{Person: 5, Address: 30, Minute: 100})
}

func TestLimiter_FiveTriesAQuarterOfAnHour(t *testing.T) {
	l, now := newLimiter(), time.Now()
	for i := range 5 {
		if wait := l.Try(now, "ana", "10.0.0.1", stranger); wait > 0 {
			t.Fatalf("try %d has to wait %v", i+1, wait)
		}
		now = now.Add(time.Minute)
	}
	if wait := l.Try(now, "ana", "10.0.0.1", stranger); wait != 10*time.Minute {
		t.Errorf("the sixth try waits %v, want 10 min", wait)
	}
	if l.Try(now, "ana", "10.0.0.2", stranger) > 0 || l.Try(now, "bo", "10.0.0.1", stranger) > 0 {
		t.Error("another user has to wait")
	}
	if wait := l.Try(now.Add(10*time.Minute), "ana", "10.0.0.1", stranger); wait > 0 {
		t.Errorf("a quarter of an hour later the wait is %v", wait)
	}
	l.Passed(now, "ana", "10.0.0.1")
	for range 5 {
		if l.Try(now.Add(10*time.Minute), "ana", "10.0.0.1", stranger) > 0 {
			t.Error("the user who knew the password has to wait")
		}
	}
	if l.Try(now.Add(10*time.Minute), "ana", "10.0.0.1", stranger) == 0 {
		t.Error("the user who knew the password may guess without end")
	}
}

// One address that tries many names shuts out itself, and no other address.
func TestLimiter_ThirtyTriesFromAnAddress(t *testing.T) {
	l, now, through := newLimiter(), time.Now(), 0
	for i := range 1000 {
		if l.Try(now, strings.Repeat("x", i), "a", stranger) == 0 {
			through++
		}
	}
	if through != 30 || l.Try(now, "ana", "b", stranger) > 0 {
		t.Errorf("%d tries went through, want 30, and those of others", through)
	}
	if wait := l.Try(now, "ana", "a", stranger); wait != 15*time.Minute {
		t.Errorf("the next one waits %v, want 15 min", wait)
	}
}

func TestLimiter_AHundredAMinuteByEveryone(t *testing.T) {
	l, now, through := newLimiter(), time.Now(), 0
	for i := range 1000 {
		if l.Try(now, "x", strings.Repeat("a", i), stranger) == 0 {
			through++
		}
	}
	if through != 100 || l.Try(now.Add(59*time.Second), "y", "b", stranger) == 0 || l.Try(now.Add(time.Minute), "y", "b", stranger) > 0 {
		t.Errorf("%d tries went through within a minute, want 100, and the next one a minute later", through)
	}
	noted := 0
	for range 1000 {
		if l.Audits(now) {
			noted++
		}
	}
	if noted != 10 {
		t.Errorf("%d failures were written down within a minute, want 10", noted)
	}
}

// A user who logged in from an address before is not shut out by others, from there or
// from anywhere, but gets no more tries of their own.
func TestLimiter_LetsInWhoWasThereBefore(t *testing.T) {
	l, now := newLimiter(), time.Now()
	l.Try(now, "ana", "home", stranger)
	l.Passed(now, "ana", "home")
	now = now.Add(24 * time.Hour)
	for i := range 1000 { // a flood from the same address, and from all others
		l.Try(now, strings.Repeat("x", i), "home", stranger)
		l.Try(now, "ana", strings.Repeat("a", i), stranger)
	}
	if l.Try(now, "ana", "work", stranger) == 0 || l.Try(now, "bo", "home", stranger) == 0 {
		t.Error("strangers are let through in a flood")
	}
	if wait := l.Try(now, "ana", "work", func() bool { return true }); wait > 0 {
		t.Errorf("a user with a session from there waits %v", wait)
	}
	through := 0
	for range 10 {
		if l.Try(now, "ana", "home", stranger) == 0 {
			through++
		}
	}
	if through != 5 {
		t.Errorf("%d tries went through, want five", through)
	}
}

// A user who has a password of their own cannot log in between their guesses at the
// passwords of others to take these guesses back.
func TestLimiter_ALoginTakesBackItsOwnTriesOnly(t *testing.T) {
	l, now, through := newLimiter(), time.Now(), 0
	for i := range 100 {
		now = now.Add(time.Second)
		if l.Try(now, "mallory", "a", stranger) == 0 {
			l.Passed(now, "mallory", "a")
		}
		if l.Try(now.Add(time.Millisecond), strings.Repeat("x", i), "a", stranger) == 0 {
			through++
		}
	}
	if through != 30 {
		t.Errorf("%d guesses at other passwords went through, want 30", through)
	}
}

// Days of guessing under ever new names leave no more behind than a quarter of
// an hour.
func TestLimiter_ForgetsThePast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter()
		for range 3 * 60 {
			for range 100 {
				_, name, _ := access.NewToken()
				l.Try(time.Now(), name, name, stranger)
			}
			time.Sleep(time.Minute)
		}
		if n := l.People(); n > 3000 {
			t.Errorf("it remembers %d people", n)
		}
	})
}
