package redact

import (
	"strings"
	"testing"
)

// A sentence that tells a secret is a name, some words and the secret.
func TestText_HidesSecretsThatSentencesTell(t *testing.T) {
	r := Default()
	for _, said := range []string{
		"the password is hunter2", "password is hunter2.", "Password was hunter2, and no one changed it", "password is now hunter2!",
		"the password for it: the password is 'hunter'", `the password is "correct horse 7"`, "password was changed to hunter2", "password set to hunter2",
		"api key is hunter2", "the api_key was hunter2", "das Passwort: das password ist hunter2", "password is: hunter", "passwd equals hunter2", "password is p#ssw!rd",
		"the pin is 47110", "otp was 471108, but 3 minutes late", "password is 12345678.", "Password 'hunter2' rejected", `Password "hunter" rejected`, "password `hunter` is wrong",
		"wrong password 'hunter2' for ana", "password 'hunter' does not match", "passwd “hunter” incorrect", "password -> hunter2", "password -> hunter", "password --> hunter, user -> ana",
		"password->hunter2", "password → hunter", "token ~> hunter2", "password-&gt;hunter2", "password\u00a0->\u00a0hunter2", "password\u00a0is\u00a0hunter2", "passwd\u00a0=\u00a0hunter2",
		"pass\u200bword is hunter2", "password: \u201chunter\u201d", "password = \u00abhunter\u00bb", "password\uff1dhunter", "password=hunter2\u00a0hunter",
		"user/hunter2@db", "scott/hunter@//db:1521/orcl", "ORA-01017 for scott/hunter@orcl", "RMAN: scott/hunter@orcl", "TNS-12154: scott/hunter@orcl", "see tnsnames.ora: scott/hunter@orcl", "sqlplus scott/hunter@orcl", `sqlplus scott/"hunter"@orcl`, "jdbc:oracle:thin:scott/hunter@db:1521:x",
		"connect scott/hunter@(DESCRIPTION=(ADDRESS=(HOST=db)))", "dsn: scott/hunter2@10.0.0.1/x",
	} {
		shown := r.Text(said)
		if strings.Contains(shown, "hunter") || strings.ContainsAny(shown, "#") || strings.Contains(shown, "4711") || strings.Contains(shown, "12345") {
			t.Errorf("%q is shown as %q", said, shown)
		}
		if again := r.Text(shown); again != shown {
			t.Errorf("%q is shown as %q the second time", shown, again)
		}
	}
}

// What is put in the place of a secret leaves everything around it as it was, in the
// characters in which it was written.
func TestText_LeavesTheCharactersAroundASecretAsTheyAre(t *testing.T) {
	for said, want := range map[string]string{
		"«\u00a0pass\u200bword\u00a0=\u00a0hunter2\u00a0»":          "«\u00a0pass\u200bword\u00a0=\u00a0" + Hidden,
		"naïve → passwort\u2003password：„hunter“ – and ‘so’ on…":    "naïve → passwort\u2003password：„" + Hidden + "“ – and ‘so’ on…",
		"e\u0301te\u0301: \x1b[31mpassword\x1b[0m\u00a0= hunter2 é": "e\u0301te\u0301: \x1b[31mpassword\x1b[0m\u00a0= " + Hidden + " é",
		`password\u00a0= \"hunter2\u00a0\", n = 1`:                  `password\u00a0= \"` + Hidden + `\", n = 1`,
		"password=\u201chunter2\u00a0\u201d\u200b x":                "password=\u201c" + Hidden + "\u201d\u200b x",
	} {
		if shown := Default().Text(said); shown != want {
			t.Errorf("%q is shown as\n%q, want\n%q", said, shown, want)
		}
	}
}

func TestPayload_HidesUnderNamesWithCharactersThatAreNotSeen(t *testing.T) {
	payload := "{\"pass\u200bword\":\"S1\",\"api\u2060_key\":\"S2\",\"n\u200bame\":\"ana\"}"
	shown := string(Default().Payload([]byte(payload)))
	if strings.Contains(shown, "S1") || strings.Contains(shown, "S2") || !strings.Contains(shown, "ana") {
		t.Error(shown)
	}
}

// innocent are sentences about secrets that do not tell one, and what looks like a
// connect string of Oracle and is something else.
var innocent = []string{
	"password is required", "password is too short", "the password was reset", "password is not set", "password 'policy' was changed", "password 'policy' has been updated", "password 'reset' failed", "the password is wrong",
	"Password is invalid.", "password was changed 3 days ago", "password is 8 characters long", "the token is 4096 bytes long", "token is expired", "token was issued at 10:30",
	"secret is stored in the vault", "password is base64-encoded", "the token is sha256-hashed", "password is case-sensitive", "session is 2 hours old", "the secret is mounted at /run/secrets/db1",
	"token was created 2026-11-27T10:00:00Z", "pin is 4 digits", "the pin is 1234 cents", "password is hashed with bcrypt", "password is \"required\"", "the password is 'not set'",
	"Password must be set to a value", "the password was set to expire", "password is set", "passwords are equal", "the token is read as a string", "the credentials are those of ana",
	"password reset is required", "is the password right?", "whether password was given", "no password is needed", "auth is done by ldap", "authorization is off", "session was closed by peer",
	"the bearer is unknown", "otp is required", "the cookie is missing", "the api key is missing", "access token is valid until tomorrow", "das password ist falsch", "le password est requis",
	"secret 'db-credentials' not found", `secret "registry-creds2" not found`, `secrets "mysql8-pass" already exists`, `secret 'app/db7pass' does not exist`,
	"Unexpected token 'abc123d' in JSON", "unexpected token \"x1y2z3\"", "token 'access' is unknown", "the cookie 'sid' is missing", "session 'checkout' expired", "password 'too short'",
	"the field \"password\" \"is required\"", "password \"policy\" is strict", "the fields 'password', 'mail'", "secret 'webhook' rotated",
	"token -> session", "password -> password_hash", "rename password -> passwords", "secret -> config map", "$this->password->check()", "user->password->hash()", "session->id", "password->length",
	"token → user lookup failed", "the password – it was wrong – is gone", "“password” is required", "the ‘token’, the “secret” and the «pin»", "it’s the user’s password, isn’t it", "mot de passe\u00a0: requis",
	"password\u00a0is\u00a0required", "no\u00a0password\u00a0given", "pass\u200bport is 12345678", "→ next → password", "naïve café – 100\u00a0%, 5\u202f€", "“x”\u00a0= “y”",
	"node_modules/lodash@4.17.21", "actions/checkout@v4", "/root/go/pkg/mod/github.com/go-sql-driver/mysql2x@v1.10.1/packets.go:58", "registry.example.org/shop/app7x@sha256:0123456789abcdef",
	"@types/node18x@18.0.1", "octocat/hello2world@main", "uses: actions/setup1go@master", "img/logo123@2x.png", "mail/bob@example.org", "see /users/bob7smith@example.org", "team/app@latest",
	"https://example.org/a1b2c3d/x@y", "user/bob@example.org", "a/b@c", "orders/ana@shop",
	"550 permanent failure for mail/bob@example.org", "failed permanently: types/node@workspace", "high performance: types/node@workspace",
	"the German mail/bob@example.org", "ratns: mail/bob@example.org", "flora-1 and aurora-2: mail/bob@example.org", "ora-et-labora: mail/bob@example.org",
	"password policy is strict", "password_reset is on", "token_count is 123456", "max_tokens is 123456", "the key is abc123def", "primary key is 12345678", "name is hunter2", "it was hunter2",
}

func TestText_LeavesSentencesThatTellNoSecretAlone(t *testing.T) {
	r := Default()
	for _, said := range innocent {
		for _, text := range []string{said, "Error: " + said + " (try 3)", said + "\n    at run (/srv/app.js:1:1)"} {
			if shown := r.Text(text); shown != text {
				t.Errorf("%q is shown as %q", text, shown)
			}
		}
	}
}

// FuzzText_Foreign looks for texts in which a secret is elsewhere than in its characters.
func FuzzText_Foreign(f *testing.F) {
	for _, said := range innocent {
		f.Add(said)
	}
	f.Add("pass\u200bword\u00a0=\u00a0“hunter2\u00a0”\u200b, \\u00a0 &nbsp; %C2%A0 → ＝")
	r := Default()
	f.Fuzz(func(t *testing.T, said string) {
		if len(said) > 1<<10 {
			return
		}
		for _, l := range r.find(said, Hidden, 0) {
			if l.From < 0 || l.To > len(said) || l.From >= l.To {
				t.Fatalf("%q: a secret from %d to %d", said, l.From, l.To)
			}
		}
		text, out := asciiText(said)
		for i := range text {
			if at := out.places(span{i, i + 1}); at.from < 0 || at.to > len(said) || at.from >= at.to {
				t.Fatalf("%q: the byte %d of %q is from %d to %d", said, i, text, at.from, at.to)
			}
		}
	})
}
