package storetest

import (
	"context"
	"errors"
	"time"

	"redrive/internal/access"
	"redrive/internal/audit"
)

// Users is who may log in.
type Users interface {
	AddUser(ctx context.Context, now time.Time, u access.User, by audit.Actor) error
	SetRole(ctx context.Context, now time.Time, name string, role access.Role, by audit.Actor) error
	SetPassword(ctx context.Context, now time.Time, name, hash string, by audit.Actor) error
	RemoveUser(ctx context.Context, now time.Time, name string, by audit.Actor) error
	Users(ctx context.Context) ([]access.User, error)
	User(ctx context.Context, name string) (access.User, error)
}

// Sessions is who is logged in.
type Sessions interface {
	Guarded() bool
	StartSession(ctx context.Context, now time.Time, s access.Session, checked access.User, by audit.Actor) error
	Session(ctx context.Context, now time.Time, hash []byte) (access.Session, error)
	SeeSession(ctx context.Context, now time.Time, hash []byte) error
	EndSession(ctx context.Context, now time.Time, hash []byte, by audit.Actor) error
	LoginFailed(ctx context.Context, now time.Time, name string, by audit.Actor) error
}

// AccessReader is who is logged in, and what they did.
type AccessReader interface {
	Sessions(ctx context.Context, now time.Time) ([]access.Session, error)
	Audit(ctx context.Context, f audit.Filter, before int64, limit int) (audit.List, error)
}

// Tokens is which programs may come in.
type Tokens interface {
	CreateToken(ctx context.Context, now time.Time, t access.Token, by audit.Actor) error
	RevokeToken(ctx context.Context, now time.Time, id string, by audit.Actor) error
	UseToken(ctx context.Context, now time.Time, id string) error
	Token(ctx context.Context, id string) (access.Token, error)
	Tokens(ctx context.Context) ([]access.Token, error)
}

var accessing = []func(*kit){
	firstUserIsAnAdmin, usersAreAddedOnce, theLastAdminStays, guardedOutlivesARestart,
	sessionsEnd, sessionsAreListed, sessionsEndWithTheirUser, sessionsNeedThePasswordThatWasChecked, sessionsOfOneUserAreBounded,
	tokensEnd, tokenNamesAreTakenWhileTheyLive,
}

var root = audit.Actor{Name: "root", Address: "127.0.0.1"}

// addUser adds a user whose password hash is made up.
func (k *kit) addUser(name string, role access.Role) access.User {
	k.Helper()
	k.check(k.AddUser(k.ctx, k.now, access.User{Name: name, Role: role, Password: "$argon2id$" + name}, root))
	u, err := k.User(k.ctx, name)
	k.check(err)
	return u
}

// logIn begins a session and returns its hash.
func (k *kit) logIn(u access.User) []byte {
	k.Helper()
	_, hash := access.NewSession()
	k.check(k.StartSession(k.ctx, k.now, access.Session{Hash: hash, User: u.Name, Address: "10.0.0.1"}, u, audit.Actor{Name: u.Name}))
	return hash
}

// over fails unless a session lets nobody in.
func (k *kit) over(what string, hash []byte) {
	k.Helper()
	if s, err := k.Session(k.ctx, k.now, hash); !errors.Is(err, access.ErrUnknown) {
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

// As long as there is no admin, nobody else can be added: who could add others?
func firstUserIsAnAdmin(k *kit) {
	if k.Guarded() {
		k.Error("an empty store is guarded")
	}
	k.saysNo("a first viewer", k.AddUser(k.ctx, k.now, access.User{Name: "bo", Role: access.Viewer, Password: "x"}, root))
	anybody := audit.Actor{Name: "anybody", Open: true}
	k.saysNo("a first token of a program", k.CreateToken(k.ctx, k.now,
		access.Token{ID: "ci", Hash: []byte("h"), Name: "ci", Role: access.Producer, Expires: k.now.Add(time.Hour)}, anybody))
	if k.Guarded() {
		k.Error("a user or a token that was refused guards the store")
	}
	k.check(k.AddUser(k.ctx, k.now, access.User{Name: "ana", Role: access.Admin, Password: "x"}, anybody))
	k.saysNo("a second first user", k.AddUser(k.ctx, k.now, access.User{Name: "eve", Role: access.Admin, Password: "x"}, anybody))
	k.saysNo("a token for whoever was first", k.CreateToken(k.ctx, k.now,
		access.Token{ID: "eve", Hash: []byte("h"), Name: "eve", Role: access.Admin, Expires: k.now.Add(time.Hour)}, anybody))
	k.addUser("bo", access.Viewer)
	if !k.Guarded() {
		k.Error("a store with users is not guarded")
	}
}

// A name belongs to one user. The list has no passwords.
func usersAreAddedOnce(k *kit) {
	k.addUser("ana", access.Admin)
	k.addUser("bo", access.Operator)
	k.saysNo("ana again", k.AddUser(k.ctx, k.now, access.User{Name: "ana", Role: access.Viewer, Password: "y"}, root))
	users, err := k.Users(k.ctx)
	k.check(err)
	at := k.now.Truncate(time.Microsecond)
	k.same("the list", users, []access.User{
		{Name: "ana", Role: access.Admin, Created: at, Changed: at}, {Name: "bo", Role: access.Operator, Created: at, Changed: at},
	})
	if _, err := k.User(k.ctx, "cy"); !errors.Is(err, access.ErrUnknown) {
		k.Errorf("a user that does not exist: %v", err)
	}
}

// The last admin can neither be removed nor become something else.
func theLastAdminStays(k *kit) {
	k.addUser("ana", access.Admin)
	k.addUser("bo", access.Viewer)
	k.saysNo("remove the last admin", k.RemoveUser(k.ctx, k.now, "ana", root))
	k.saysNo("the last admin as a viewer", k.SetRole(k.ctx, k.now, "ana", access.Viewer, root))
	k.check(k.SetRole(k.ctx, k.now, "bo", access.Admin, root))
	k.check(k.RemoveUser(k.ctx, k.now, "ana", root))
	if err := k.RemoveUser(k.ctx, k.now, "ana", root); !errors.Is(err, access.ErrUnknown) {
		k.Errorf("remove nobody: %v", err)
	}
	if u, err := k.User(k.ctx, "bo"); err != nil || u.Role != access.Admin || !k.Guarded() {
		k.Errorf("what is left: %+v, %v", u, err)
	}
}

// Who has to log in has to do so after a restart as well; a token that is
// revoked or over guards as a user does.
func guardedOutlivesARestart(k *kit) {
	k.check(k.CreateToken(k.ctx, k.now, access.Token{ID: "a", Hash: []byte("h"), Name: "a", Role: access.Viewer, Expires: k.now.Add(time.Minute)}, root))
	k.check(k.RevokeToken(k.ctx, k.now, "a", root))
	if !k.Guarded() {
		k.Error("a store with a token is not guarded")
	}
	k.restart()
	if !k.Guarded() {
		k.Error("after a restart the store is not guarded")
	}
}

// A session is over 12 hours after it was used last, 7 days after it began,
// and when it is ended.
func sessionsEnd(k *kit) {
	u := k.addUser("ana", access.Admin)
	idle, long, ended := k.logIn(u), k.logIn(u), k.logIn(u)
	s, err := k.Session(k.ctx, k.now, long)
	k.check(err)
	if s.User != "ana" || s.Role != access.Admin || s.Address != "10.0.0.1" {
		k.Errorf("the session is %+v", s)
	}
	k.check(k.EndSession(k.ctx, k.now, ended, root))
	k.check(k.EndSession(k.ctx, k.now, ended, root))
	k.over("ended", ended)
	for range 7*2 - 1 {
		k.pass(access.Idle - time.Minute)
		if _, err := k.Session(k.ctx, k.now, long); err != nil {
			k.Fatalf("a session in use is over after %v", k.now.Sub(s.Created))
		}
		k.check(k.SeeSession(k.ctx, k.now, long))
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
		"role":     func() error { return k.SetRole(k.ctx, k.now, "bo", access.Operator, root) },
		"password": func() error { return k.SetPassword(k.ctx, k.now, "bo", "other", root) },
		"remove":   func() error { return k.RemoveUser(k.ctx, k.now, "bo", root) },
		"remove and add": func() error {
			return errors.Join(k.RemoveUser(k.ctx, k.now, "bo", root), k.AddUser(k.ctx, k.now, access.User{Name: "bo", Role: access.Viewer, Password: "x"}, root))
		},
	} {
		if _, err := k.User(k.ctx, "bo"); err == nil {
			k.check(k.RemoveUser(k.ctx, k.now, "bo", root))
		}
		hash := k.logIn(k.addUser("bo", access.Viewer))
		k.pass(time.Second)
		k.check(change())
		k.over(what, hash)
		if err := k.SeeSession(k.ctx, k.now, hash); err != nil {
			k.Errorf("%s: %v", what, err)
		}
		k.over(what+", then used", hash)
	}
}

// A password that was changed while it was checked begins no session.
func sessionsNeedThePasswordThatWasChecked(k *kit) {
	u := k.addUser("ana", access.Admin)
	k.pass(time.Second)
	k.check(k.SetPassword(k.ctx, k.now, "ana", "other", root))
	_, hash := access.NewSession()
	err := k.StartSession(k.ctx, k.now, access.Session{Hash: hash, User: "ana"}, u, root)
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
	if _, err := k.Session(k.ctx, k.now, second); err != nil {
		k.Errorf("the second of 51: %v", err)
	}
}

// A token lets somebody in until it expires or is revoked; its use is noted.
func tokensEnd(k *kit) {
	id, _, hash := access.NewToken()
	k.check(k.CreateToken(k.ctx, k.now, access.Token{ID: id, Hash: hash, Name: "deploy", Role: access.Producer, Expires: k.now.Add(time.Hour)}, root))
	k.check(k.UseToken(k.ctx, k.now.Add(time.Minute), id))
	t, err := k.Token(k.ctx, id)
	k.check(err)
	if !access.SameHash(t.Hash, hash) || t.CreatedBy != root.Name || t.Role != access.Producer || !t.Used.Equal(k.now.Add(time.Minute).Truncate(time.Microsecond)) {
		k.Errorf("the token is %+v", t)
	}
	if !t.Live(k.now) || t.Live(k.now.Add(time.Hour)) {
		k.Error("the token does not last for an hour")
	}
	k.check(k.RevokeToken(k.ctx, k.now, id, root))
	k.check(k.RevokeToken(k.ctx, k.now.Add(time.Minute), id, root))
	all, err := k.Tokens(k.ctx)
	k.check(err)
	if len(all) != 1 || all[0].Live(k.now) || !all[0].Revoked.Equal(k.now.Truncate(time.Microsecond)) {
		k.Errorf("the tokens are %+v", all)
	}
	if err := k.RevokeToken(k.ctx, k.now, "none", root); !errors.Is(err, access.ErrUnknown) {
		k.Errorf("revoke nothing: %v", err)
	}
}

// Histories name tokens, so that no two with one name live at a time.
func tokenNamesAreTakenWhileTheyLive(k *kit) {
	create := func(id string) error {
		return k.CreateToken(k.ctx, k.now, access.Token{ID: id, Hash: []byte(id), Name: "ci", Role: access.Viewer, Expires: k.now.Add(time.Hour)}, root)
	}
	k.check(create("a"))
	k.saysNo("a second token named ci", create("b"))
	k.check(k.RevokeToken(k.ctx, k.now, "a", root))
	k.check(create("b"))
	k.pass(time.Hour)
	k.check(create("c"))
}

// sessionsAreListed: those that are not over, and the last login of everybody;
// who ends somebody else's is told apart from who logs out.
func sessionsAreListed(k *kit) {
	ana, bo := k.addUser("ana", access.Admin), k.addUser("bo", access.Viewer)
	k.pass(time.Minute)
	own := k.logIn(ana)
	k.pass(time.Minute)
	first := k.logIn(bo)
	listed := func() (users []string) {
		all, err := k.Sessions(k.ctx, k.now)
		k.check(err)
		for _, s := range all {
			users = append(users, s.User+" "+string(s.Role))
		}
		return users
	}
	k.same("sessions", listed(), []string{"bo viewer", "ana admin"})
	all, err := k.Users(k.ctx)
	k.check(err)
	k.same("last logins", []time.Time{all[0].LoggedIn, all[1].LoggedIn}, []time.Time{k.now.Add(-time.Minute), k.now})
	k.check(k.EndSession(k.ctx, k.now, first, audit.Actor{Name: "ana"}))
	k.same("sessions", listed(), []string{"ana admin"})
	k.check(k.EndSession(k.ctx, k.now, own, audit.Actor{Name: "ana"}))
	k.same("sessions", len(listed()), 0)
	log, err := k.Audit(k.ctx, audit.Filter{}, 0, 2)
	k.check(err)
	k.same("the log", []string{log.Entries[1].Action + " " + log.Entries[1].Subject, log.Entries[0].Action + " " + log.Entries[0].Subject},
		[]string{"session.end bo", "logout ana"})
	k.logIn(ana)
	k.pass(access.Idle)
	k.same("sessions that nobody used", len(listed()), 0)
}
