package admin

import (
	"redrive/internal/access"
	"redrive/internal/apitype"
)

// User is someone who can log in.
type User struct {
	// The name of the user.
	Name string `json:"name"`
	// What the user may do.
	Role access.Role `json:"role"`
	// When the user was added.
	CreatedAt apitype.Time `json:"created_at,omitzero"`
	// When the password was changed last.
	ChangedAt apitype.Time `json:"changed_at,omitzero"`
	// When the user logged in last.
	LastLoginAt apitype.Time `json:"last_login_at,omitzero"`
}

// UserList is the users.
type UserList struct {
	// The users by name.
	Users []User `json:"users"`
}

// UserAnswer is the user on whom a request acted.
type UserAnswer struct {
	// The user.
	User User `json:"user"`
}

// UserChanged names the user whose password was changed.
type UserChanged struct {
	// The name of the user.
	Changed string `json:"changed"`
}

// UserRemoved names the user who was removed.
type UserRemoved struct {
	// The name of the user.
	Removed string `json:"removed"`
}

// NewUser adds a user. With the first one everyone has to log in.
type NewUser struct {
	// The name of the user.
	Name string `json:"name"`
	// What the user may do.
	Role access.Role `json:"role"`
	// The first password, at least 10 characters.
	Password string `json:"password"`
}

// RoleRequest gives a user another role.
type RoleRequest struct {
	// What the user may do.
	Role access.Role `json:"role"`
}

// PasswordRequest gives a user another password.
type PasswordRequest struct {
	// The new password, at least 10 characters.
	Password string `json:"password"`
}

// Session is a login that has not ended.
type Session struct {
	// Names the session.
	ID string `json:"id"`
	// Who is logged in.
	User string `json:"user"`
	// What the user may do.
	Role access.Role `json:"role"`
	// The address from which the user logged in.
	Address string `json:"address,omitzero"`
	// When the user logged in.
	CreatedAt apitype.Time `json:"created_at"`
	// When the session was used last.
	SeenAt apitype.Time `json:"seen_at"`
	// When the session ends.
	EndsAt apitype.Time `json:"ends_at"`
}

// SessionList is who is logged in.
type SessionList struct {
	// The sessions.
	Sessions []Session `json:"sessions"`
}

// SessionEnded names the session that was ended.
type SessionEnded struct {
	// The id of the session.
	Ended string `json:"ended"`
}

// Token is what a program proves with who it is.
type Token struct {
	// Names the token.
	ID string `json:"id"`
	// What it is for.
	Name string `json:"name"`
	// What its bearer may do.
	Role access.Role `json:"role"`
	// When it was made.
	CreatedAt apitype.Time `json:"created_at"`
	// Who made it.
	CreatedBy string `json:"created_by"`
	// When it expires.
	ExpiresAt apitype.Time `json:"expires_at"`
	// When it was used last.
	UsedAt apitype.Time `json:"used_at,omitzero"`
	// When it was revoked.
	RevokedAt apitype.Time `json:"revoked_at,omitzero"`
}

// TokenList is the tokens.
type TokenList struct {
	// The tokens.
	Tokens []Token `json:"tokens"`
}

// TokenRevoked names the token that was revoked.
type TokenRevoked struct {
	// The id of the token.
	Revoked string `json:"revoked"`
}

// NewToken makes a token.
type NewToken struct {
	// What it is for.
	Name string `json:"name"`
	// What its bearer may do.
	Role access.Role `json:"role"`
	// How long it lasts, 90 days without it.
	Expires string `json:"expires,omitzero" want:"a duration, for example 90d or P90D"`
}

// TokenMade is a new token. Its secret is shown this once.
type TokenMade struct {
	// The token.
	Token Token `json:"token"`
	// What a program sends: Authorization: Bearer SECRET.
	Secret string `json:"secret"`
}
