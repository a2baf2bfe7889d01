package storetest

import (
	"errors"
	"time"

	"redrive/internal/access"
	"redrive/internal/audit"
)

var accessing = []func(*kit){
	firstUserIsAnAdmin, usersAreAddedOnce, theLastAdminStays, guardedOutlivesARestart,
	sessionsEnd, sessionsAreListed, sessionsEndWithTheirUser, sessionsNeedThePasswordThatWasChecked, sessionsOfOneUserAreBounded,
	tokensEnd, tokenNamesAreTakenWhileTheyLive,
}

var root = audit.Actor{Name: "root", Address: "127.0.0.1"}

// addUser adds a user whose password hash is made up.
func (k *kit) addUser(name string, role access.Role) access.User {
	k.Helper()
	k.check(k.Accounts.AddUser(k.ctx, k.now, access.User{Name: name, Role: role, Password: "$argon2id$" + name}, root))
	u, err := k.Accounts.User(k.ctx, name)
	k.check(err)

	return u
}

// logIn begins a session and returns its hash.
func (k *kit) logIn(u access.User) []byte {
	k.Helper()

	_, hash := access.NewSession()
	k.check(k.Accounts.StartSession(k.ctx, k.now, access.Session{Hash: hash, User: u.Name, Address: "10.0.0.1"}, u, audit.Actor{Name: u.Name}))

	return hash
}

// over fails unless a session is no longer valid.
func (k *kit) over(what string, hash []byte) {
	k.Helper()

	if s, err := k.Accounts.Session(k.ctx, k.now, hash); !errors.Is(err, access.ErrUnknown) {
		k.Errorf("%s: the session is %+v, %v; want it over", what, s, err)
	}
}

// saysNo fails unless the error says no.
func (k *kit) saysNo(what string, err error) {
	k.Helper()

	if !errors.As(err, new(*access.Refusal)) {
		k.Errorf("%s: %v, want a refusal", what, err)
	}
}

// As long as there is no admin, no other user can be added: no one could add more.
func firstUserIsAnAdmin(k *kit) {
	if k.Accounts.Guarded() {
		k.Error("an empty store is guarded")
	}

	k.saysNo("a first viewer", k.Accounts.AddUser(k.ctx, k.now, access.User{Name: "bo", Role: access.Viewer, Password: "x"}, root))
	anonymous := audit.Actor{Name: "anybody", Open: true}
	k.saysNo("a first token of a program", k.Accounts.CreateToken(k.ctx, k.now,
		access.Token{ID: "ci", Hash: []byte("h"), Name: "ci", Role: access.Producer, Expires: k.now.Add(time.Hour)}, anonymous))

	if k.Accounts.Guarded() {
		k.Error("a user or a token that was refused guards the store")
	}

	k.check(k.Accounts.AddUser(k.ctx, k.now, access.User{Name: "ana", Role: access.Admin, Password: "x"}, anonymous))
	k.saysNo("a second first user", k.Accounts.AddUser(k.ctx, k.now, access.User{Name: "eve", Role: access.Admin, Password: "x"}, anonymous))
	k.saysNo("a token for whoever was first", k.Accounts.CreateToken(k.ctx, k.now,
		access.Token{ID: "eve", Hash: []byte("h"), Name: "eve", Role: access.Admin, Expires: k.now.Add(time.Hour)}, anonymous))
	k.addUser("bo", access.Viewer)

	if !k.Accounts.Guarded() {
		k.Error("a store with users is not guarded")
	}
}

// A name belongs to one user. The list has no passwords.
func usersAreAddedOnce(k *kit) {
	k.addUser("ana", access.Admin)
	k.addUser("bo", access.Operator)
	k.saysNo("ana again", k.Accounts.AddUser(k.ctx, k.now, access.User{Name: "ana", Role: access.Viewer, Password: "y"}, root))
	users, err := k.Accounts.Users(k.ctx)
	k.check(err)
	at := k.now.Truncate(time.Microsecond)
	k.same("the list", users, []access.User{
		{Name: "ana", Role: access.Admin, Created: at, Changed: at}, {Name: "bo", Role: access.Operator, Created: at, Changed: at},
	})

	if _, err := k.Accounts.User(k.ctx, "cy"); !errors.Is(err, access.ErrUnknown) {
		k.Errorf("a user that does not exist: %v", err)
	}
}

// The last admin can neither be removed nor become something else.
func theLastAdminStays(k *kit) {
	k.addUser("ana", access.Admin)
	k.addUser("bo", access.Viewer)
	k.saysNo("remove the last admin", k.Accounts.RemoveUser(k.ctx, k.now, "ana", root))
	k.saysNo("the last admin as a viewer", k.Accounts.SetRole(k.ctx, k.now, "ana", access.Viewer, root))
	k.check(k.Accounts.SetRole(k.ctx, k.now, "bo", access.Admin, root))
	k.check(k.Accounts.RemoveUser(k.ctx, k.now, "ana", root))

	if err := k.Accounts.RemoveUser(k.ctx, k.now, "ana", root); !errors.Is(err, access.ErrUnknown) {
		k.Errorf("remove nobody: %v", err)
	}

	if u, err := k.Accounts.User(k.ctx, "bo"); err != nil || u.Role != access.Admin || !k.Accounts.Guarded() {
		k.Errorf("what is left: %+v, %v", u, err)
	}
}

// Who has to log in has to do so after a restart as well; a token that is
// revoked or over guards as a user does.
func guardedOutlivesARestart(k *kit) {
	k.check(k.Accounts.CreateToken(k.ctx, k.now, access.Token{ID: "a", Hash: []byte("h"), Name: "a", Role: access.Viewer, Expires: k.now.Add(time.Minute)}, root))
	k.check(k.Accounts.RevokeToken(k.ctx, k.now, "a", root))

	if !k.Accounts.Guarded() {
		k.Error("a store with a token is not guarded")
	}

	k.restart()

	if !k.Accounts.Guarded() {
		k.Error("after a restart the store is not guarded")
	}
}

// A session is over 12 hours after it was used last, 7 days after it began,
// and when it is ended.
func sessionsEnd(k *kit) {
	u := k.addUser("ana", access.Admin)
	idle, long, ended := k.logIn(u), k.logIn(u), k.logIn(u)
	s, err := k.Accounts.Session(k.ctx, k.now, long)
	k.check(err)

	if s.User != "ana" || s.Role != access.Admin || s.Address != "10.0.0.1" {
		k.Errorf("the session is %+v", s)
	}

	k.check(k.Accounts.EndSession(k.ctx, k.now, ended, root))
	k.check(k.Accounts.EndSession(k.ctx, k.now, ended, root))
	k.over("ended", ended)

	for range 7*2 - 1 {
		k.pass(access.Idle - time.Minute)

		if _, err := k.Accounts.Session(k.ctx, k.now, long); err != nil {
			k.Fatalf("a session in use is over after %v", k.now.Sub(s.Created))
		}

		k.check(k.Accounts.SeeSession(k.ctx, k.now, long))
	}

	k.over("unused", idle)
	k.now = s.Created.Add(access.Lifetime)
	k.over("a week old", long)
	k.over("nobody's", nil)
	k.over("made up", make([]byte, 32))
}

// Another role, another password, and the end of the user end all sessions.
func sessionsEndWithTheirUser(k *kit) {
	k.addUser("root", access.Admin)

	for what, change := range map[string]func() error{
		"role":     func() error { return k.Accounts.SetRole(k.ctx, k.now, "bo", access.Operator, root) },
		"password": func() error { return k.Accounts.SetPassword(k.ctx, k.now, "bo", "other", root) },
		"remove":   func() error { return k.Accounts.RemoveUser(k.ctx, k.now, "bo", root) },
		"remove and add": func() error {
			return errors.Join(k.Accounts.RemoveUser(k.ctx, k.now, "bo", root), k.Accounts.AddUser(k.ctx, k.now, access.User{Name: "bo", Role: access.Viewer, Password: "x"}, root))
		},
	} {
		if _, err := k.Accounts.User(k.ctx, "bo"); err == nil {
			k.check(k.Accounts.RemoveUser(k.ctx, k.now, "bo", root))
		}

		hash := k.logIn(k.addUser("bo", access.Viewer))
		k.pass(time.Second)
		k.check(change())
		k.over(what, hash)

		if err := k.Accounts.SeeSession(k.ctx, k.now, hash); err != nil {
			k.Errorf("%s: %v", what, err)
		}

		k.over(what+", then used", hash)
	}
}

// A password that was changed while it was checked begins no session.
func sessionsNeedThePasswordThatWasChecked(k *kit) {
	u := k.addUser("ana", access.Admin)
	k.pass(time.Second)
	k.check(k.Accounts.SetPassword(k.ctx, k.now, "ana", "other", root))

	_, hash := access.NewSession()

	err := k.Accounts.StartSession(k.ctx, k.now, access.Session{Hash: hash, User: "ana"}, u, root)
	if !errors.Is(err, access.ErrUnknown) {
		k.Errorf("a login by the old password: %v", err)
	}

	k.over("of the old password", hash)
}

// One user cannot fill the store with logins: the oldest ends.
func sessionsOfOneUserAreBounded(k *kit) {
	u := k.addUser("ana", access.Admin)
	first := k.logIn(u)
	k.pass(time.Second)

	second := k.logIn(u)
	for range 49 {
		k.pass(time.Second)
		k.logIn(u)
	}

	k.over("the oldest of 51", first)

	if _, err := k.Accounts.Session(k.ctx, k.now, second); err != nil {
		k.Errorf("the second of 51: %v", err)
	}
}

// A token is valid until it expires or is revoked; its use is recorded.
func tokensEnd(k *kit) {
	id, _, hash := access.NewToken()
	k.check(k.Accounts.CreateToken(k.ctx, k.now, access.Token{ID: id, Hash: hash, Name: "deploy", Role: access.Producer, Expires: k.now.Add(time.Hour)}, root))
	k.check(k.Accounts.UseToken(k.ctx, k.now.Add(time.Minute), id))
	t, err := k.Accounts.Token(k.ctx, id)
	k.check(err)

	if !access.SameHash(t.Hash, hash) || t.CreatedBy != root.Name || t.Role != access.Producer || !t.Used.Equal(k.now.Add(time.Minute).Truncate(time.Microsecond)) {
		k.Errorf("the token is %+v", t)
	}

	if !t.Live(k.now) || t.Live(k.now.Add(time.Hour)) {
		k.Error("the token does not last for an hour")
	}

	k.check(k.Accounts.RevokeToken(k.ctx, k.now, id, root))
	k.check(k.Accounts.RevokeToken(k.ctx, k.now.Add(time.Minute), id, root))
	all, err := k.Accounts.Tokens(k.ctx)
	k.check(err)

	if len(all) != 1 || all[0].Live(k.now) || !all[0].Revoked.Equal(k.now.Truncate(time.Microsecond)) {
		k.Errorf("the tokens are %+v", all)
	}

	if err := k.Accounts.RevokeToken(k.ctx, k.now, "none", root); !errors.Is(err, access.ErrUnknown) {
		k.Errorf("revoke nothing: %v", err)
	}
}

// Histories name tokens, so that no two with one name live at a time.
func tokenNamesAreTakenWhileTheyLive(k *kit) {
	create := func(id string) error {
		return k.Accounts.CreateToken(k.ctx, k.now, access.Token{ID: id, Hash: []byte(id), Name: "ci", Role: access.Viewer, Expires: k.now.Add(time.Hour)}, root)
	}
	k.check(create("a"))
	k.saysNo("a second token named ci", create("b"))
	k.check(k.Accounts.RevokeToken(k.ctx, k.now, "a", root))
	k.check(create("b"))
	k.pass(time.Hour)
	k.check(create("c"))
}

// sessionsAreListed: those that are not over, and the last login of every user; a
// user who ends another user's session is told apart from one who logs out.
func sessionsAreListed(k *kit) {
	ana, bo := k.addUser("ana", access.Admin), k.addUser("bo", access.Viewer)
	k.pass(time.Minute)
	own := k.logIn(ana)
	k.pass(time.Minute)
	first := k.logIn(bo)
	listed := func() (users []string) {
		all, err := k.Accounts.Sessions(k.ctx, k.now)
		k.check(err)

		for _, s := range all {
			users = append(users, s.User+" "+string(s.Role))
		}

		return users
	}
	k.same("sessions", listed(), []string{"bo viewer", "ana admin"})
	all, err := k.Accounts.Users(k.ctx)
	k.check(err)
	k.same("last logins", []time.Time{all[0].LoggedIn, all[1].LoggedIn}, []time.Time{k.now.Add(-time.Minute), k.now})
	k.check(k.Accounts.EndSession(k.ctx, k.now, first, audit.Actor{Name: "ana"}))
	k.same("sessions", listed(), []string{"ana admin"})
	k.check(k.Accounts.EndSession(k.ctx, k.now, own, audit.Actor{Name: "ana"}))
	k.same("sessions", len(listed()), 0)
	log, err := k.Accounts.Audit(k.ctx, audit.Filter{}, 0, 2)
	k.check(err)
	k.same("the log", []string{log.Entries[1].Action + " " + log.Entries[1].Subject, log.Entries[0].Action + " " + log.Entries[0].Subject},
		[]string{"session.end bo", "logout ana"})
	k.logIn(ana)
	k.pass(access.Idle)
	k.same("sessions that nobody used", len(listed()), 0)
}
