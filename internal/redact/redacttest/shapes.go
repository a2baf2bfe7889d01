// Package redacttest makes secrets in the shapes in which jobs, programs and
// services show them, for tests that look for them where they must not be.
package redacttest

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// Canary is the beginning of every secret.
const Canary = "canary7f3a91"

// Shape is a text that holds a secret.
type Shape struct {
	Name string
	Text string
	Leak string // what is to be found nowhere: the secret, as the text has it
}

// names are what secrets are called.
var names = strings.Fields(`password passwd pwd pass passphrase secret client_secret token access_token refreshToken id_token csrf_token
	apiKey X-Api-Key api_secret secret_key aws_secret_access_key private_key signing_key webhookSecret authorization session_id
	jwt bearer credentials auth passcode pw session DB_PASSWORD smtpPassword cvv iban otp`)

// assigned are texts in which a name ¤ stands before its value §.
var assigned = []string{
	`¤=§`, `¤: "§"`, `"¤":"§"`, `"¤": "§"`, `'¤': '§'`, `'¤' => '§'`, `:¤ => "§"`, `¤ = '§'`, `¤ := "§"`, `--¤=§`, `--¤ §`, `?a=1&¤=§&b=2`, `a=1; ¤=§; b=2`,
	`<¤>§</¤>`, `<¤ type="x">§</¤>`, `<¤><![CDATA[§]]></¤>`, `<x ¤="§"/>`, `<¤>` + "\n" + `§` + "\n" + `</¤>`, `<¤` + "\n" + `>§</¤>`,
	"¤:\n  §", "¤: |\n  first\n  §\n  last", "¤: >-\n  §", "- ¤: |2\n    §\n", "¤:\n  - a\n  - §", "¤=\n§", "¤:\n§", "¤:\n\"§\"",
	"¤: \"first\n§\nlast\"", "¤='first\n§'", "\"¤\":\n  \"§\"", "\"¤\": [\n  \"a\",\n  \"§\"\n]", "\"¤\": {\n  \"a\": \"§\"\n}",
	`("¤", "§")`, `('¤', b'§')`, `['¤', '§']`, `{'¤': u'§'}`, `¤=SecretStr('§')`, `[¤] => §`, `["¤"]=> string(9) "§"`, `[¤:protected] => §`,
	`["¤":"User":private]=>` + "\n" + `  string(9) "§"`, `s:8:"¤";s:5:"§";`, `map[¤:§ user:ana]`, `{User:ana ¤:§}`, `¤:[§]`, `&{¤:§}`, `%{"¤" => "§"}`, `¤: Some("§")`,
	`user[¤]=§`, `¤[]=§`, `¤%5B0%5D=§`, `¤: !!str §`, `<property><name>¤</name><value>§</value></property>`, "<key>¤</key>\n<string>§</string>", `user%5B¤%5D=§`, `¤%3D§`, `%22¤%22:%22§%22`, `&quot;¤&quot;:&quot;§&quot;`, `{\"¤\":\"§\"}`, `{\\\"¤\\\":\\\"§\\\"}`, `"¤"\u003a"§"`, `¤:\n  §`, `¤: |\n  §`,
	`{"key":"¤","value":"§"}`, `{"value":"§","name":"¤"}`, `{"name": "¤", "n": 1, "val": {"a": ["§"]}}`, "- name: ¤\n  value: §", `{'key': '¤', 'value': '§'}`, `{Key:¤ Value:§}`,
	`<field name="¤" value="§"/>`, `<entry key="¤">§</entry>`, "<input type=hidden name=\"¤\"\n value=\"§\">", "Content-Disposition: form-data; name=\"¤\"\r\n\r\n§\r\n--x",
	`#<User id: 1, ¤: "§">`, `#¤: "§"`, `-¤: "§"`, `  +"¤": "§"`, `User(name=ana, ¤=§)`, `User [¤=§, id=1]`, `¤   = '§'`, `{ ¤: '§', id: 1 }`, `{ ¤: [ '§' ] }`,
	`insert into users (name, ¤) values ('ana', '§')`, `Key (¤)=(§) already exists.`, `Parameters: {"user"=>{"¤"=>"§"}}`, `¤=a;§`, `¤="it\"§"`, `¤='it''§'`, `¤={"a":"b","c":"§"}`,
	`db.¤.main=§`, `¤.0=§`, `¤.0: "§"`, `db.¤.main: §`, `{'app.¤.0': '§'}`, `a.¤.b.c => "§"`, `<x app.¤.main="§"/>`, `¤.primary := '§'`, `?a=1&user.¤.x=§&b=2`,
	`**¤**: §`, `- **¤** = §`, `**¤:** §`, `__¤__: §`, `__¤:__ §`, `*¤*: §`, `***¤***: §`, "`¤`: §", "**`¤`**: `§`", "__`¤`__ = `§`", "**`¤`:** §", "* **\"¤\"**: §",
}

// foreign are those in which names, signs and quotes are not all of ASCII, or are parted by
// characters that are not seen.
var foreign = []string{
	"¤\u00a0=\u00a0§", "¤\u00a0: §", "¤\u202f:\u202f«\u00a0§\u00a0»", "¤\u3000＝\u3000§", "¤：§", "¤\u200b=§", "\ufeff¤: §", "¤=\u200b§", "¤\u2060\u00a0\u00ad=\u2009§",
	"¤ → §", "¤ ⇒ §", "¤→§", "¤ ➜ “§”", "¤ ≔ §", "¤=“§”", "¤: „§“", "¤ = ‘§’", "‘¤’: ‘§’", "¤ = 「§」", "（¤＝§）", "¤&nbsp;=&nbsp;§", "¤&#160;:&#160;§", `¤\u00a0=\u00a0§`, `¤\u200b: §`,
	"¤&#x200b;=§", "¤%C2%A0=%C2%A0§", "¤ &rarr; §", "¤\u2028: §", `¤\u{200b}=§`, "¤\u202e=§", "¤️: §",
}

// sentences tell a secret in words.
var sentences = []string{
	`¤ is §`, `the ¤ was §.`, `¤ is "§"`, `your ¤ is now §`, `the ¤ was changed to §, and the job failed`, `¤ set to §`, `"¤" is §`, `das ¤ ist §`, `le ¤ est « § »`, `¤ is: §`, `¤ equals '§'`,
	`¤ -> §`, `¤ --> §`, `¤ ~> '§'`, `'¤' -> '§'`, `¤->§`, `¤ '§' rejected`, `¤ "§" is wrong`, "¤ `§` was refused", `invalid ¤ '§'`, `wrong ¤ “§” for ana`, "¤\u00a0is\u00a0§",
}

// coloured are the same on a terminal, as loggers and tools write them there.
var coloured = []string{
	"\x1b[36m¤\x1b[0m=§", "\x1b[3m¤\x1b[0m\x1b[2m=\x1b[0m\"§\"", "\x1b[36m¤\x1b[0m=\x1b[35m§\x1b[0m \x1b[36mn\x1b[0m=1", "\x1b[35m¤\x1b[39m: \x1b[32m\"§\"\x1b[39m",
	"\x1b[1;39m{\n  \x1b[0m\x1b[34;1m\"¤\"\x1b[0m\x1b[1;39m:\x1b[0m \x1b[0;32m\"§\"\x1b[0m\x1b[1;39m\n}\x1b[0m", "\x1b[33m'¤'\x1b[0m => \x1b[38;2;1;2;3m'§'\x1b[0m",
	"\x1b[01;31m\x1b[K¤\x1b[m\x1b[K=§", "\x1b[1m¤\x1b(B\x1b[m: §", "\x1b[31m¤:\x1b[0m\n  \x1b[2m§\x1b[0m", "--¤ \x1b[4m§\x1b[24m", "\x1b[90m<\x1b[0m¤\x1b[90m>\x1b[0m§",
	"\x1b[32m\"name\"\x1b[0m: \x1b[33m\"¤\"\x1b[0m, \x1b[32m\"value\"\x1b[0m: \x1b[33m\"§\"\x1b[0m",
	`\x1b[31m¤\x1b[0m=§`, `\e[31m¤\e[0m=§`, `\033[31m¤\033[0m=§`, `\u{1b}[31m¤\u{1b}[0m=§`, `\\u001B[31m¤\\u001B[0m=§`,
}

// plain are texts that bring along their own names, or need none.
var plain = []string{
	`Authorization: Bearer §`, `authorization: Basic §`, `Authorization: Digest username="a", response="§"`, `Proxy-Authorization: §`, `Cookie: a=b; sid=§`,
	"Set-Cookie: sid=§; Path=/\r\nHost: x", `cookies: {'sid': '§'}`, `{'Cookie': 'sid=§'}`, `HTTP_COOKIE=sid=§`, `connect.sid=§`, `PHPSESSID=§`, `JSESSIONID=§`, `laravel_session=§`,
	`sent Bearer § to it`, `[ 'Host', 'x', 'Cookie', 'sid=§' ]`, `map[Authorization:[Bearer §] Accept:[*/*]]`, `Headers { authorization: 'Bearer §' }`,
	`https://ana:§@example.org/x`, `postgres://ana:§@db:5432/x?sslmode=disable`, `redis://:§@cache`, `amqp://ana:p/§@mq/%2f`, `mongodb+srv://ana:§@cluster0/x`, `ana:§@tcp(db:3306)/x`,
	`ftp://ana:§@files`, `https://example.org/?access_token=§#x`, `jdbc:mysql://db/x?user=ana&password=§`, `Server=db;User Id=ana;Password=§;`, `host=db user=ana password=§ dbname=x`,
	`DefaultEndpointsProtocol=https;AccountName=x;AccountKey=§;`, `Endpoint=sb://x/;SharedAccessKeyName=k;SharedAccessKey=§`, `Data Source=db;Pwd=§`,
	`curl -u ana:§ https://example.org`, `curl --user 'ana:§' https://example.org`, `curl -H 'X-Api-Key: §' https://example.org`, `curl -b 'sid=§' https://example.org`,
	`curl -sS -X POST -d 'password=§' https://example.org`, `curl --oauth2-bearer § https://example.org`, `mysql -u ana -p§ shop`, `mysqldump -p§ shop > x.sql`, `sshpass -p § ssh ana@host`, `sshpass -p§ ssh ana@host`,
	`curl -su ana:§ https://example.org`, `https://x.example/f?sp=r&sig=§`, `https://x.example/f?Expires=1&amp;Signature=§`, `https://x.example/f?X-Amz-Date=1&X-Amz-Signature=§`,
	`PGPASSWORD=§ psql -h db`, `docker login -u ana -p § registry`, `redis-cli -a § ping`, `wget --password=§ https://example.org`, `export API_TOKEN=§`, `keytool -storepass § -list`,
	`CREATE ROLE ana PASSWORD '§'`, `CREATE USER ana IDENTIFIED BY '§'`, `ALTER USER ana WITH PASSWORD '§'`, `SQLSTATE[23000] (SQL: insert into "users" ("email", "password") values (a@b.c, §))`,
	`password: {"old": "a", "new": "§"}`, `Credentials=[§], Authenticated=false`, `spring.datasource.password=§`, `SECRET_KEY = '§'`, `credentials: {user: ana, key: §}`,
	"Traceback (most recent call last):\n  File \"a.py\", line 3, in login\n    password = '§'\nValueError: no", "    at login(password=§) (/srv/a.js:3:1)", "\"password\" => \"§\"\n#items: array:1",
	`-----BEGIN RSA PRIVATE KEY-----` + "\nMIIE§\nJq0f\n-----END RSA PRIVATE KEY-----", "-----BEGIN PRIVATE KEY-----\nMIIE§", "MIIEowIBAAKCAQEA\n§\nJq0f==\n-----END RSA PRIVATE KEY-----",
	`-----BEGIN EC PRIVATE KEY-----\nMIIE§\n-----END EC PRIVATE KEY-----`, `MIIEowIBAAKCAQEA\n§\n-----END PRIVATE KEY-----`, "-----BEGIN PGP PRIVATE KEY BLOCK-----\n\n§\n-----END PGP PRIVATE KEY BLOCK-----",
	"-----BEGIN OPENSSH PRIVATE KEY-----\r\nb3Bl§\r\n-----END OPENSSH PRIVATE KEY-----", `{"type":"service_account","private_key":"-----BEGIN PRIVATE KEY-----\n§\n-----END PRIVATE KEY-----\n"}`,
	`name=password&value=§`, `value=§&name=password`, `a=1%2526api_key%253D§`, `["Host","x","Cookie","sid=§"]`, `{"rawHeaders":["Host","x","X-Api-Key","§"]}`, `[["Host","x"],["X-Api-Key","§"]]`,
	"SG.0xxxxxxxxxxxxxxxxxxxxx.§", "hvs.xxxxxxxx§", "GET /invite/ghp_xxxxxxxxxxxxxxxx§ HTTP/1.1", "GET /invite/eyJhbGciOiJub25lIn0.xxxx§.x HTTP/1.1", "dop_v1_xxxxxxxxxxxxx§", "https://hooks.slack.com/services/T0AAAAAAA/B0AAAAAAA/xxxxxxxx§", "POST /services/T0AAAAAAA/B0AAAAAAA/xxxxxxxx§ HTTP/1.1",
	`sqlplus ana/§@db`, `ORA-01017: invalid username; logon denied for ana/§@orcl`, `ana/§@db`, `ana/§@//db:1521/shop`, `dsn=ana/§@(DESCRIPTION=(ADDRESS=(HOST=db)))`, `jdbc:oracle:thin:ana/§@db:1521:orcl`,
	`cannot connect: ana/§@10.0.0.1:1521/x`, `('ana/§@db')`, "pass\u200bword=§", "passw\u00adord: §", "p\u200da\u200ds\u200ds\u200dwd = §", "ｐａｓｓｗｏｒｄ＝§", `pass\u200bword=§`, `pass&#8203;word=§`, "api\u00a0key: §", "api\u200b_key=§",
	"it used ghp_xxxxxxxxxxxxxxxx§ to push", "xoxb-123456789012-§", "sk_live_xxxxxxxxxxxxxxxx§", "glpat-xxxxxxxx§", "github_pat_xxxxxxxx§", "npm_xxxxxxxxxxxxxxxx§",
}

// wrapping is what a text may be wrapped in.
type wrapping struct {
	name string
	make func(text, leak string) (string, string)
}

func wrappings() []wrapping {
	quoted := func(text string) string {
		b, _ := json.Marshal(text) // a string can always be written
		return string(b)
	}
	same := func(around func(string) string) func(text, leak string) (string, string) {
		return func(text, leak string) (string, string) { return around(text), leak }
	}

	return []wrapping{
		{"JSON", same(func(s string) string { return `{"n":1,"log":` + quoted(s) + `}` })},
		{"JSON in JSON", same(func(s string) string { return `{"body":` + quoted(`{"log":`+quoted(s)+`}`) + `}` })},
		{"JSON in a line", same(func(s string) string { return `answer 422: {"log":` + quoted(s) + `} after 3 tries` })},
		{"JSON that is cut off", same(func(s string) string { return `{"log":` + quoted(s) + `,"more":{"x":"` })},
		{"a string", same(func(s string) string { return `said ` + quoted(s) })},
		{"words", same(func(s string) string { return "while it worked (" + s + " ) it failed\nand gave up\n" })},
		{"lines", same(func(s string) string { return "first line\n\n" + s + "\nlast line\n" })},
		{"a trace", same(func(s string) string {
			return "Error: denied\n" + s + "\n    at run (/srv/worker.js:10:4)\n    at main (/srv/main.js:1:1)\n"
		})},
		{"a log line", same(func(s string) string { return "2026-11-22T10:00:00Z ERROR [worker-3] n=1 " + s })},
		{"a text that is cut off", same(func(s string) string { return "so much was said: " + s + "  password=\"" })},
		{"base64", func(text, _ string) (string, string) {
			coded := base64.StdEncoding.EncodeToString([]byte(text))
			return "body=" + coded + " (base64)", strings.TrimRight(coded, "=")
		}},
		{"base64 of a login", func(_, leak string) (string, string) {
			coded := base64.StdEncoding.EncodeToString([]byte("ana:" + leak))
			return "sent " + coded, strings.TrimRight(coded, "=")
		}},
		{"a JSON Web Token", func(_, leak string) (string, string) {
			coded := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"HS256"}`)) + "." + base64.RawURLEncoding.EncodeToString([]byte(`{"sub":"`+leak+`"}`))
			return "signed by " + coded + ".c2lnbmF0dXJl and sent", coded
		}},
	}
}

// Shapes returns secrets in more than 300 shapes, each with a secret of its own:
// every form and every name at least once, and forms and names that the seed draws,
// in everything that a text may be wrapped in.
func Shapes(seed uint64) []Shape {
	random := rand.New(rand.NewPCG(seed, 0))
	var all []Shape

	filled := func(form, name string) Shape {
		secret := fmt.Sprintf("%s-%03d", Canary, len(all))
		if strings.Contains(form, "PRIVATE KEY") || strings.Contains(form, "xxx") {
			secret = strings.ReplaceAll(secret, "-", "x") // of letters and digits only
		}

		return Shape{form, strings.NewReplacer("¤", name, "§", secret).Replace(form), secret}
	}
	name := func() string { return names[random.IntN(len(names))] }
	for _, form := range slices.Concat(assigned, foreign, sentences, coloured, plain) {
		all = append(all, filled(form, name()))
	}

	for _, name := range names {
		all = append(all, filled(assigned[random.IntN(len(assigned))], name))
	}

	named := slices.Concat(assigned, foreign, sentences, coloured)
	for range 8 {
		for _, w := range wrappings() {
			s := filled(named[random.IntN(len(named))], name())
			s.Name = w.name + " of " + s.Name
			s.Text, s.Leak = w.make(s.Text, s.Leak)
			all = append(all, s)
		}
	}

	return all
}
