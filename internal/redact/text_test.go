package redact

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"redrive/internal/rawjson"
)

// secretForms are the ways in which secrets are said; S1 and S2 are secrets.
func secretForms() []string {
	return []string{
		// what languages print
		`{'password': b'S1'}`, `{'password': u'S1'}`, `password=rb"S1"`, `User(password=SecretStr('S1 S2'), n=1)`,
		"array(1) {\n  [\"password\"]=>\n  string(9) \"S1\"\n}", "[\"password\"]=>\n string(9) \"S1 S2\"",
		`s:8:"password";s:5:"S1 S2";`, `('password', 'S1')`, `[("password", "S1 S2")]`, `setHeader("Authorization", "Basic S1")`,
		`password: {"a":"x}S1"} S`, `password: {'a': 'x}', 'b': 'S1'}`, `map[password:map[a:S1 b:S2] n:1]`, `Password:&{A:S1 B:S2}`,
		`password=(S1 S2)`, `:password=>"S1"`, `"password" => 'S1'`, `password := "S1"`, `password ="S1"`, `@password="S1">`,
		// values without quotes
		`password=abc;S1&x,S2`, `password=<S1>`, `password=a'S1`, `password=a"S1"b`, `password=a|S1`, `password=a\S1`, `password=)S1`,
		"password:\n  S1", "password:\r\n\tS1", `PASSWORD:S1`, `--password S1`, `--db-password=S1`, `password==S1`,
		// quotes in values
		`password='it''S1'`, `password='it\'S1'`, `password="a\"S1"`, `password='it'\''S1'`, `password="a"'S1'`, `password='it's S1'`,
		`"{\"password\":\"a\\\"S1\"}"`, `{\"password\":\"a\\\\\\\"S1\"}`, `password="S1`, "password='a\nS1'", "password=`S1 S2`",
		// marks
		`<password>S1</password>`, `<password type="x">S1</password>`, `<password><![CDATA[S1 </a> S2]]></password>`,
		`<ns:password>S1 S2</ns:password>`, `<password><a>x</a><b>S1</b></password>`, `<password value="S1"/>`,
		`<user password="S1 S2">`, `&lt;password&gt;S1&lt;/password&gt;`,
		// escapes
		`{"p\u0061ssword":"S1", oops`, `{"password"\u003a"S1"`, `?password%3DS1`, `?a=1%26password%3DS1%20S2`, `p%61ssword=S1`,
		`password=&quot;S1 S2&quot;`, `&quot;password&quot;:&quot;S1 S2&quot;`, `{&#34;password&#34;:&#34;S1 S2&#34;}`, `%22password%22:%22S1 S2%22`,
		`error:\npassword=S1`, `a\napi_key=S1`, `user%5Bpassword%5D=S1`, `user[password]=S1`,
		// colours
		"\x1b[36mpassword\x1b[0m\x1b[2m=\x1b[0mS1", "\x1b[34;1m\"pass\"\x1b[0m\x1b[1m:\x1b[0m \x1b[32m\"S1 S2\"\x1b[0m", `\u001b[1mpin\u001b[m: S1`,
		// tables, and the forms of Symfony
		`user[password][first]=S1&a=1`, `user%5Bpassword%5D%5Bfirst%5D=S1`, `user[plainPassword][a_b][0]=S1`,
		"| name | ana |\n| password | S1 S2 |\n| role | admin |", "| **password** | `S1` |", `|password|S1|`,
		`<tr><td>password</td><td>S1</td><td>b</td></tr>`, "<th class=\"k\">Password </th>\n  <td class=\"v\">S1 S2</td>",
		`<td><b>password</b></td><td><code>S1</code></td>`,
		// Markdown
		"**password**: S1", "**pin:** `S1 S2`", "__secret:__ S1", "- **`token`** = S1",
		// names of several words
		`db.password.main=S1`, `password.0=S1`, `password.0: "S1 S2"`, `"api.token.x": "S1"`, `a.b.pin.c.d=S1`,
		// addresses
		`user:S1@tcp(db:3306)/x`, `dsn="user:S1@S2@tcp(db:3306)/x?a=b@c"`, `postgres://a:p/S1@db/x`, `postgres://a:p?S1@db/x`,
		`https://a:p/S1@db/x`, `redis://:S1@h`, `amqp://a:S1@h1,amqp://b:S2@h2`,
		// other names, and more words
		`smtp_password=S1`, `api key: S1`, `private key = S1`, `Set-Cookie: a=S1; b=S2`, `Authorization: Digest a=S1, b=S2`, `Bearer S1S1S1S1S1S1S1S1S1`,
		"-----BEGIN RSA PRIVATE KEY-----\nS1\nS2\n-----END RSA PRIVATE KEY-----", "key: -----BEGIN PRIVATE KEY-----\nS1\nS2",
	}
}

func TestText_HidesWhateverSecretsLookLike(t *testing.T) {
	r := Default()
	for _, in := range secretForms() {
		for _, around := range []string{"%s", "it said %s and no more", "\n%s\n", "(%s)", "x; %s,"} {
			said := fmt.Sprintf(around, in)
			shown := r.Text(said)
			if strings.Contains(shown, "S1") || strings.Contains(shown, "S2") {
				t.Errorf("%q is shown as %q", said, shown)
			}
			if again := r.Text(shown); again != shown {
				t.Errorf("%q is shown as %q the second time", shown, again)
			}
		}
	}
}

// A text may end anywhere, as one that was too long to keep. Only what is no
// secret yet is shown: before the host that makes it one, or a word after Bearer.
func TestText_HidesInWhateverIsCutOffAnywhere(t *testing.T) {
	r := Default()
	for _, form := range secretForms() {
		said := strings.NewReplacer("S1", "ZQZQ", "S2", "QZQZ").Replace(form)
		early := strings.Contains(said, "@tcp(") || strings.HasPrefix(said, "Bearer")
		for cut := range len(said) + 1 {
			shown := []string{r.Text(said[:cut])}
			for _, document := range []string{said[:cut], `["` + said[:cut], string(rawjson.Quote(said[:cut]))} {
				shown = append(shown, string(r.Payload([]byte(document))))
			}
			if strings.ContainsAny(strings.Join(shown, " "), "QZ") && (!early || cut == len(said)) {
				t.Errorf("%q is shown as %q", said[:cut], shown)
			}
		}
	}
}

func TestText_HidesWhatIsCutOff(t *testing.T) {
	for _, said := range []string{`no such host: postgres://a:S1`, `"password":"S1`, `password={"a":["S1`, `<password>S1`, `-----BEGIN PRIVATE KEY-----S1`} {
		if shown := Default().Text(said); strings.Contains(shown, "S1") {
			t.Errorf("%q is shown as %q", said, shown)
		}
	}
}

// Brackets that stay open are read once, not once from each of them: a megabyte of
// them costs little, and leaves enough of what may be read for what is in them.
func TestText_HidesInDocumentsBehindBracketsThatStayOpen(t *testing.T) {
	const pair = `{"value":"S1","x":[{"name":1}],"name":"pin"}`
	for _, open := range []string{"[", `{"a":`, `[{"a":[1,[2],`, `"[" [`, "[[x "} {
		if shown := Default().Text(strings.Repeat(open, 100_000/len(open)) + pair + ", and " + pair); strings.Contains(shown, "S1") {
			t.Errorf("%s, many times: %s", open, shown[max(0, len(shown)-100):])
		}
	}
}

func TestText_LeavesOrdinarySentencesAlone(t *testing.T) {
	r := Default()
	for _, said := range []string{
		"| user | password | role |\n|---|:--|---|\n| ana | x | admin |", "children[password].children[first]: This value is too short.",
		"<td>password</td></tr>", "password | less", "<p>password</p><p>S</p>", "password reset mail sent to bob", "token expired", "no such key: 42", "the password is wrong", "passwordless: yes, secretary=ann",
		"wrong password for bob", "password, token and secret are required", "unexpected token } in JSON at position 4",
		"token_count: 12, max_tokens=5, password_reset_at=2026-01-02", "author: ann, compass: north, bypass=1", "duplicate key: 7",
		"primary key = 7", "foreign key (order_id)=(7) is not present", "bearer token missing", "basic authentication failed",
		"usage: login <user> <password> [flags]", "GET https://example.org:8080/@scope/pkg?x=a@b 404", "https://example.org/a@b",
		"mail to bob@example.org at 12:30", "at fn@app.js (https://example.org/app.js:1:2)", "dial tcp 10.0.0.1:5432: connection refused",
		"secrets: ", "password=", "session expired: log in again", "card declined: insufficient funds", "Optional<Token> tokens",
		"  at Auth.check (/srv/token.js:10:4)", "100% of 5 = 5; a&b", "C:\\tokens\\new.txt", "the field 'password', 'mail' or 'name'",
		"http://[::1]:8080/", "Cookie header missing", "-----BEGIN CERTIFICATE-----\nabc\n-----END CERTIFICATE-----",
		"auth: connection refused", "auth: 401 Unauthorized", "jwt: signature is invalid", "session: not found", "credentials: none were given",
		"bearer: unsupported", "auth_method=oidc session_count=3 auth: ok", "invalid session:\n  the user logged out", "author: Ann", "author=ann-marie",
		"invalid token:\n    at parse (/srv/app.js:10:4)\n    at main (/srv/app.js:1:1)", "cannot read the secret:\nTraceback (most recent call last):\n  File \"a.py\", line 3",
		"password:\n\nOptions:\n  -h", "password=\nuser=ana\nhost=db", "passwords:\nuser: ana", "usage: login <user> <password>\nOptions follow",
		"Unexpected token '<', \"<!DOCTYPE \"... is not valid JSON", "Unexpected token 'o' in JSON", "{\"key\":\"order\",\"value\":7}", "{\"name\":\"Ann\",\"value\":\"x\"}",
		"name: report, value: 12", "key: 7, value: 3", "the header name: Accept, value: text/html", "values (1, 2) of users (name, mail)", "docker run -u 1000:1000 -p 80:80 nginx",
		"ssh -p 22 ana@host", "mkdir -p /srv/app", "tar -xzf a.tar -C /srv", "required: ['password', 'mail', 'name']", "[\"password\", \"password_confirmation\"] are missing",
		"commit 9fceb02d0ae598e95dc970b74767f19372d61af8", "trace 4bf92f3577b34da6a3ce929d0e0e4736", "id 0198c0de-0000-7000-8000-0123456789ab", "sha256:e3b0c44298fc1c149afbf4c8996fb924",
		"github.com/example/authentication/service/handler", "java.lang.IllegalStateException: com.example.OrderService", "internationalization", "/srv/app/lib/worker/queue/consumer.js:10",
		"TypeError: Cannot read properties of undefined (reading 'id')", "ERROR: duplicate key value violates unique constraint \"users_mail_key\"\nDETAIL: Key (mail)=(a@b.c) already exists.",
		"SQLSTATE[42S02]: Base table or view not found", "insert into orders (id, total) values (1, 2)", "amount 4990 EUR, order 88412, 12:30:05, 3 of 5 (60%)", "10.0.0.1:5432",
		"{\"order_id\":88412,\"lines\":[{\"sku\":\"TR-204\",\"qty\":2}],\"note\":\"sent to bob: ok\"}", "exit status 1", "signal: killed", "-- stdout ---", "--- a/main.go",
		"Content-Disposition: form-data; name=\"file\"\r\n\r\nhello", "<input name=\"city\" value=\"Bonn\">", "password_file: /run/secrets/db", "token_path=/var/run/token",
		"at parse (/srv/token.js:10:4)", "/srv/rack/session.rb:120:in 'fetch'", "auth.service.ts:42:11 - error", "https://auth.example.org:8443/v1/tokens2", "auth.example.org:443",
		"com.example.auth.LoginService: ORA-00001 raised", "app.auth.views: user not found", "secrets.yml: mapping values are not allowed", "token.length: 12, password.min=8",
		"open secret.txt: no such file", "errors.password.blank: can't be blank", "token.parse (app.js:3:1) a.b.c=1",
		"**password** is wrong", "* token * expired", "a **secret** file: see above", "__init__: failed",
		"SG.example.org and hvs.internal", "GET /services/Tax/Billing/customers_of_today", "GET /services/T1/B2/x",
	} {
		if shown := r.Text(said); shown != said {
			t.Errorf("%q is shown as %q", said, shown)
		}
	}
}

func TestNames(t *testing.T) {
	r := made(t, Options{Keys: []string{"+pan", "-csrf_token", "-build_token", "+Straße"}})
	for want, all := range map[bool]string{
		true: `password PASSWORD PassWord smtp_password smtpPassword SMTPPassword smtppassword password2 passwords mysqlPassword pass db_pass
			stripe_secret_key github_token bearerToken accesstoken tokens api-keys private_key_pem creditCardNumber credit_card_cvv cvv2 X-Api-Key
			x.api.key authorization_code cookies password_confirmation password_reset_token pan card_pan panNumber iban_de client-secret STRASSE_x
			user_session_id pin_code straße jwt bearer credentials awsCredential auth basic_auth passcode pw db_pw session user_session jsessionid
			connect.sid storepass AccountKey posSession pos_session phpsession mobsession usersessions`,
		false: `token_count max_tokens maxTokens total_tokens prompt_tokens tokens_used password_reset_at passwordResetAt compass bypass author authors authority secretary
			possession Possessions self_possession inPossessionOf repossession obsession obsessions supersession
			tokenizer tokenization csrf_token csrfToken build_token span company pinned spinning shipping cookie_consent public_key key keys card
			passenger passport passage authorized secret_id session_count session_start auth_method authMethod auth_provider oauth_app authority power pwned password_file token_type token_expires_in password_policy api_key_name id name tok customer`,
	} {
		for _, name := range strings.Fields(all) {
			if name == "STRASSE_x" {
				continue
			}
			if got := r.names.hide(name); got != want {
				t.Errorf("%s is hidden: %t", name, got)
			}
		}
	}
}

// Here with every eighth piece.
func TestText_TakesNoLongerThanTheTextIsLong(t *testing.T) { takesNoLonger(t, 8) }

func TestLong_TextTakesNoLongerThanTheTextIsLong(t *testing.T) { takesNoLonger(t, 1) }

func takesNoLonger(t *testing.T, stride int) {
	t.Helper()
	r := Default()
	for i, piece := range []string{
		`password="`, `password='\`, `<password>`, `<password `, `<password>x</a>`, "password=[", "://a:", "a:", "(", "a(b:", `\`, `%3D`, "&quot;",
		"'password',", "-----BEGIN PRIVATE KEY-----", "x ", "password ", "password=&quot;", "password:\n ", "a-", "aA1", "@", "password=x ", "]", "<", "&lt;password&gt;",
		`{"a":`, `["`, `[{`, `{"a":{"b":1},`, `"{\"a`, `"[{\"`, `{"key":"password",`, "name=password ", `<a name="password">`, `<a name="password" `, "value=x ", "eyJ",
		"password:\n", "password:\n\n", "password: |\n  ", "password: |\n", `password:\n`, `password: |\n`, "session:\n a b\n", "token:\n at x\n", "[password:", "'password', '",
		"-----END RSA PRIVATE KEY-----", "-----END PRIVATE KEY-----\n", "MIIB\n", `MIIB\n`, "dXNlcjpw", "dXNlcjpw/", "password</name>", "password</name><a>",
		"password[", "?sig=", "mysql -p", "curl -u ", "(password, ", "(password) values (", "PASSWORD '",
		"identified by ", "name=\"password\"\n\n", "\n ", "auth: ",
		"v=[", "value=(", "value: {", "v=[v={", `v="`, "key=[", `k="`, "k='", "name=", `field="v"`, `\"{`, `password=••••••"`, `password: ••••••'`,
		"\x1b[0m", "\x1b[", "\x1b[0", "\x1b[0mpassword\x1b[0m=", `\` + "\x1b[m", `\u001b[0m`, `\\\x1b[`,
		"password.", "a.password=", "a.b=", "password.x: ", "password.x</name>",
		"**password", "password**", "**pin:**", "**pin:** ", "SG.", "hvs.a", "/services/TAAAAAA/BAAAAAA/", "services/T",
		"%25", "%253D", "%2526", "name=password&", "value=x&name=password&",
		"password is ", "password '", "password -> ", "password->", "password is '", "pin is set to ", "a/b@", "a/b", "password\u00a0", "\u00a0", "\u200b", "password=x\u00a0",
		`\u00a0`, `\\u`, "&nbsp;", "%C2", "“", "“password” ‘", "→", "password→", "password is \"",
	} {
		if i%stride != 0 {
			continue
		}
		if !linear(func(n int) { r.find(strings.Repeat(piece, n/len(piece)), Hidden, 0) }) {
			t.Errorf("%q, repeated sixteen times as often, takes more than 64 times as long", piece)
		}
	}
}

// linear reports whether something takes about sixteen times as long for a text
// that is sixteen times as long. What grows with the square takes 256 times as long,
// each time that it is tried, and 128 kB then take seconds.
func linear(do func(size int)) bool {
	const tries, size = 5, 8 << 10
	took := func(size int) time.Duration {
		start := worked()
		do(size)
		return worked() - start
	}
	for range tries {
		once, long := took(size), took(16*size)
		if long < 64*once || long < 100*time.Millisecond { // the clock may be coarse
			return true
		}
	}
	return false
}

// worked is how long this process has worked: on a busy machine, less than the time
// that has passed.
func worked() time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		panic(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

func FuzzText(f *testing.F) {
	for _, form := range secretForms() {
		f.Add(form, uint8(1))
	}
	r := Default()
	f.Fuzz(func(t *testing.T, said string, n uint8) {
		last := 0
		for _, l := range r.find(strings.Repeat(said, 1+int(n%4)), Hidden, 0) {
			if l.From < last || l.To <= l.From {
				t.Fatalf("%q: a secret from %d to %d after one that ends at %d", said, l.From, l.To, last)
			}
			last = l.To
		}
	})
}
