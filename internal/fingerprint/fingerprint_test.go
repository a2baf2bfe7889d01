package fingerprint

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestNormalise_ReplacesWhatDiffers(t *testing.T) {
	for message, want := range map[string]string{
		"user 42 not found":                                                "user ‹number› not found",
		"user42 has no order_88421":                                        "user‹number› has no order_‹number›",
		"took 1,234.5 of -3e+10 tries":                                     "took ‹number› of ‹number› tries",
		"job 0198c1f2-aaaa-7bbb-8ccc-0123456789ab is gone":                 "job ‹uuid› is gone",
		"key=0198c1f2-aaaa-7bbb-8ccc-0123456789AB;":                        "key=‹uuid›;",
		"at 2026-03-04T05:06:07.123Z: late":                                "at ‹time›: late",
		"since 2026-03-04 05:06:07.5 +0000 UTC.":                           "since ‹time›.",
		"due 2026/03/04, 05:06:07":                                         "due ‹time›",
		"POST https://api.example.com/v2/x?id=1: 503 Service Unavailable":  "POST ‹url›: 503 Service Unavailable",
		"see (https://example.com/a).":                                     "see (‹url›).",
		"status code 502 from postgres://u:p@db:5432/x":                    "status code 502 from ‹url›",
		"dial tcp 10.0.0.7:5432: connect: connection refused":              "dial tcp ‹ip›: connect: connection refused",
		"dial tcp [2001:db8::1]:443: i/o timeout":                          "dial tcp ‹ip›: i/o timeout",
		"route 2001:db8::/32 and fe80::/10: no way":                        "route ‹ip› and ‹ip›: no way",
		"bound to 2001:db8::: already in use":                              "bound to ‹ip›: already in use",
		"bound to 2001:db8::.":                                             "bound to ‹ip›.",
		"from 2001:db8:: to fe80::1: no":                                   "from ‹ip› to ‹ip›: no",
		"Vec::<T> of ab12::<T>, e1::(x) and 10.0.0.7::":                    "Vec::<T> of ab‹number›::<T>, e‹number›::(x) and ‹ip›::",
		"at Foo1::Bar, ab12::new and a::b::":                               "at Foo‹number›::Bar, ab‹number›::new and a::b::",
		"dial tcp [0000:0000:0000:0000:0000:ffff:192.168.100.228]:443: no": "dial tcp ‹ip›: no",
		"open /var/spool/exports/88.csv: no such file":                     "open ‹path›: no such file",
		`open C:\temp\x.txt: denied`:                                       "open ‹path›: denied",
		"recipient ana.b+c@mail.example.com is suppressed":                 "recipient ‹email› is suppressed",
		`no handler for "email.send"`:                                      "no handler for ‹text›",
		"can't read 'abc', don't ask":                                      "can't read ‹text›, don't ask",
		`{"error":"maintenance","code":17}`:                                `{"error":‹text›,"code":‹number›}`,
		"object at 0x7ffee3b0 is nil":                                      "object at ‹hex› is nil",
		"commit 9fceb02d0ae598e95dc970b74767f19372d61af8 is bad":           "commit ‹hex› is bad",
		"charge ch_3NqK9abX7Lm2 failed":                                    "charge ch_‹id› failed",
		"customer cus_NffrFeUfNV2Hib unknown":                              "customer cus_‹id› unknown",
		"OAuth2TokenInvalid in the S3ObjectStorageService":                 "OAuth‹number›TokenInvalid in the S‹number›ObjectStorageService",
		"ran longer than its ttr, 1m30s":                                   "ran longer than its ttr, ‹duration›",
		"ids [1 2 3] and 4, 5, 6":                                          "ids [‹number›] and ‹number›",
		"index out of range [5] with length 3":                             "index out of range [‹number›] with length ‹number›",
		"a  b\n\tc ":                                                       "a b c",
		"451 4.7.1 greylisted":                                             "‹number› greylisted",
		"429 Too Many Requests":                                            "429 Too Many Requests",
		"std::vector<int>::at":                                             "std::vector<int>::at",
		"and/or the </b> of it":                                            "and/or the </b> of it",
		"Überweisung 12 für Müller3 fehlgeschlagen":                        "Überweisung ‹number› für Müller‹number› fehlgeschlagen",
		"lookup db-3.internal on 10.0.0.2:53: no such host":                "lookup ‹host› on ‹ip›: no such host",
		"connecting to redis:6379, or connect to server":                   "connecting to ‹host›, or connect to server",
		"com.shop.User and main.go are no hosts":                           "com.shop.User and main.go are no hosts",
		"12.4 MB is more than 500kB in 2 minutes and 30 ms":                "‹size› is more than ‹size› in ‹duration› and ‹duration›",
		"on March 4, 2026 at 9:30 AM, or Tue, 03 Mar 2026 10:00:00 GMT":    "on ‹time›, or ‹time›",
		"you may 5 and Marching 7":                                         "you may ‹number› and Marching ‹number›",
		"call +1 (555) 010-9999 now":                                       "call ‹number› now",
		"exports/a/9.csv and and/or a/b":                                   "‹path› and and/or a/b",
		"GET /items/99?full=1&x=2: no":                                     "GET ‹path›: no",
		"IBAN GB33BUKB20201555555555":                                      "IBAN ‹id›",
		"SQLSTATE[23000]: exit status 137, errno 5":                        "SQLSTATE[23000]: exit status 137, errno 5",
		"SQLSTATE[42S02] of 42S02, SQLSTATE[HY000] [2002]":                 "SQLSTATE[42S02] of ‹number›S‹number›, SQLSTATE[HY000] [‹number›]",
		"(SQLSTATE 42P01), SQLSTATE=22P02, SqlState: 08S01":                "(SQLSTATE 42P01), SQLSTATE=22P02, SqlState: 08S01",
		"SQL state [42S02]; error code [1146]; sql_state: HY093":           "SQL state [42S02]; error code [‹number›]; sql_state: HY093",
		`sqlState: '42S02', {"sqlstate":"42P01"}`:                          `sqlState: '42S02', {"sqlstate":"42P01"}`,
		"SQLSTATE[42S022], SQLSTATE 42s02, SQLSTATE of 42S02":              "SQLSTATE[‹number›S‹number›], SQLSTATE ‹number›s‹number›, SQLSTATE of ‹number›S‹number›",
		"gone\nThe SQL being executed was: SELECT 1":                       "gone",
		`null in column "amount" of 'ana'`:                                 "null in column 'amount' of ‹text›",
		"undefined method `email' for nil":                                 "undefined method 'email' for nil",
		`KeyError: 'order_8841'`:                                           "KeyError: 'order_‹number›'",
		`no key "XAU"`:                                                     "no key ‹text›",
		`(1054, "Unknown column 'vat' in 'x y'")`:                          `(‹number›, "Unknown column 'vat' in ‹text›")`,
		"a `422 Unprocessable Entity` of `x`":                              "a `422 Unprocessable Entity` of ‹text›",
		"« Dupont » „Meier GmbH“ 「键盘」":                                     "‹text›",
		"duplicate key\nDETAIL:  Key (email)=(x)":                          "duplicate key",
		"gone away (Connection: mysql, SQL: select 1)":                     "gone away",
		"": "",
	} {
		if got := Normalise(message); got != want {
			t.Errorf("%q becomes\n%q, want\n%q", message, got, want)
		}
	}
}

// Values of every kind change nothing, whatever they are and wherever they
// stand.
func TestOf_FingerprintIgnoresValues(t *testing.T) {
	const message = "order {} of {} failed after {}: see {}"
	values := [][]string{
		{"1", "7", "123456", "-4", "3.25"},
		{"0198c1f2-aaaa-7bbb-8ccc-0123456789ab", "ffffffff-0000-4000-8000-000000000000"},
		{"30s", "1m2.5s", "12ms"},
		{"https://example.com/x", "http://10.0.0.1:80/?a=b&c=d", "amqp://user@host"},
		{"'a'", `"b c"`, "`d`"},
		{"2026-01-02", "2026-01-02T03:04:05Z", "2026-01-02 03:04:05.678+02:00"},
		{"10.0.0.1", "192.168.100.200:8080", "fe80::1"},
		{"/a/b", "./c.txt", "/x/y-z/0.log"},
	}
	for _, alike := range values {
		first := Of("t", "c", strings.ReplaceAll(message, "{}", alike[0]), "").Fingerprint
		for _, value := range alike[1:] {
			if got := Of("t", "c", strings.ReplaceAll(message, "{}", value), ""); got.Fingerprint != first {
				t.Errorf("%q and %q are told apart: %q", alike[0], value, got.Message)
			}
		}
	}
}

func TestOf_FingerprintTellsCausesApart(t *testing.T) {
	seen := map[string]string{}
	for name, c := range map[string]Cause{
		"all":     Of("t", "c", "m", "at a.b(x.js:1)"),
		"type":    Of("u", "c", "m", "at a.b(x.js:1)"),
		"class":   Of("t", "d", "m", "at a.b(x.js:1)"),
		"message": Of("t", "c", "n", "at a.b(x.js:1)"),
		"trace":   Of("t", "c", "m", "at a.c(x.js:1)"),
		"none":    Of("t", "c", "m", ""),
		"moved":   Of("tc", "", "m", ""),
		"status":  Of("t", "c", "503 Service Unavailable", ""),
		"other":   Of("t", "c", "502 Bad Gateway", ""),
	} {
		if before, ok := seen[c.Fingerprint]; ok || len(c.Fingerprint) != 16 {
			t.Errorf("%s has the fingerprint %q, as %q has", name, c.Fingerprint, before)
		}
		seen[c.Fingerprint] = name
	}
}

// The kind of a value and the class before a sentence make no other cause; a class
// before a value does.
func TestOf_FingerprintIgnoresHowACauseIsWritten(t *testing.T) {
	alike := func(a, b string) bool { return Of("t", "c", a, "").Fingerprint == Of("t", "c", b, "").Fingerprint }
	for a, b := range map[string]string{
		"user 42 not found":                     "user 0198c1f2-aaaa-7bbb-8ccc-0123456789ab not found",
		"TypeError: x is not iterable":          "x is not iterable",
		"Uncaught Error: it did break":          "it did break",
		"order 12-7/3 is late":                  "order 8 is late",
		`Get "https://a.test/x": EOF`:           `Post "https://a.test/y": EOF`,
		"host id: Zb8cD9eF0gH1+xY2zA3bC4dE5f==": "host id: 17",

		"Could not connect to Redis at cache:6379: refused":     "Could not connect to Redis at 10.0.0.7:6379: refused",
		"Connection refused (prices:8080)":                      "Connection refused (10.0.0.7:8080)",
		"locked by runner-2 (10.1.3.9) since 9/16/25, 2:00 AM":  "locked by ci-7f9c (172.17.0.4) since 12/1/25, 11:58 PM",
		"psql: error: the server says no":                       "pg_dump: error: the server says no",
		"docker: Error response from daemon: manifest unknown.": "Error response from daemon: manifest unknown",
		"No space left on device @ io_write - /srv/a/17.csv":    "No space left on device @ rb_sysopen - /srv/b/18.csv",
		"NoMethodError: undefined method 'cents' for nil":       "NoMethodError: undefined method 'cents' for nil:NilClass",
	} {
		if !alike(a, b) {
			t.Errorf("%q and %q are told apart", a, b)
		}
	}
	for a, b := range map[string]string{
		"KeyError: 7":       "IndexError: 7",
		"KeyError: 'email'": "KeyError: 'name'",
		"Get lost 7":        "Post lost 7",

		`key not found: "warehouse_token"`: `key not found: "warehouse_url"`,
		"refused (10.0.0.1:80)":            "closed (10.0.0.1:80)",
		"mail: error in the header":        "mail: fault in the header",
	} {
		if alike(a, b) {
			t.Errorf("%q and %q are one cause", a, b)
		}
	}
}

// A fingerprint is kept in databases: it must not change by chance.
func TestOf_FingerprintIsStable(t *testing.T) {
	c := Of("email.send", "smtp.Error", "451 4.7.1 greylisted, try 3", "at Mailer.send (/app/mailer.js:10:5)")
	if c.Fingerprint != "dfd6b96a0f0af33b" {
		t.Errorf("the fingerprint of %+v is not what it was", c)
	}
}

func TestNormalise_CutsLongMessagesAtAWord(t *testing.T) {
	head := strings.Repeat("word ", 50)
	long := head + strings.Repeat("x1 ", 1000)
	got := Normalise(long)
	if len(got) > maxMessage || !strings.HasPrefix(got, head) {
		t.Errorf("a long message became %d bytes: %q", len(got), got)
	}
	if a, b := Normalise(strings.Repeat("ß", 900)), Normalise(strings.Repeat("ß", 2000)); a != b || !utf8.ValidString(a) {
		t.Errorf("one long word is cut as %q and %q", a, b)
	}
}

func TestReplaced_IsExplained(t *testing.T) {
	got := Of("t", "c", "user 7 at 2026-01-02 from 10.0.0.1 and 10.0.0.2, or 8", "").Replaced()
	want := []Placeholder{{number, "a number"}, {moment, "a time"}, {ip, "an IP address"}}
	if !slices.Equal(got, want) {
		t.Errorf("replaced is %q, want %q", got, want)
	}
	for _, m := range matchers {
		if !slices.ContainsFunc(Placeholders(), func(p Placeholder) bool { return p.Name == m.as }) {
			t.Errorf("%s has no meaning", m.as)
		}
	}
}

func TestLists_AreSortedForTheSearch(t *testing.T) {
	if !slices.IsSorted(naming) || !slices.IsSorted(hosts) {
		t.Errorf("%q or %q is not sorted", naming, hosts)
	}
}

func FuzzOf(f *testing.F) {
	f.Add("user 42 failed 'x' at 10.0.0.1:80 https://a/b 2026-01-02T03:04:05Z", goTrace)
	f.Add("‹number› \x00\xff \"\\\" ::1 ./ 0x -", pythonTrace)
	f.Add("`a' «b» 「c connect to x:1 [::1]:2 Mar 4 +1 (5) a/b.c \"cannot 'x' be\" key 'y'", goTrace)
	f.Add("1e 1e+ 5. 5, 12:34:56 +0000 UTC", javaTrace+jsTrace+phpTrace+rubyTrace)
	f.Fuzz(func(t *testing.T, message, trace string) {
		c := Of("t", "c", message, trace)
		if len(c.Message) > maxMessage || !utf8.ValidString(c.Message) || strings.ContainsAny(c.Message, "\n\t\r") {
			t.Errorf("the message %q became %q", message, c.Message)
		}
		if len(c.Frames) > MaxFrames || len(c.Fingerprint) != 16 {
			t.Errorf("the cause is %+v", c)
		}
		for _, frame := range c.Frames {
			if frame == "" || len(frame) > maxFrame+8 || !utf8.ValidString(frame) || strings.ContainsAny(frame, "\n\r\x00") {
				t.Errorf("a frame of %q is %q", trace, frame)
			}
		}
		if again := Of("t", "c", message, trace); again.Fingerprint != c.Fingerprint {
			t.Errorf("%q has the fingerprints %s and %s", message, c.Fingerprint, again.Fingerprint)
		}
	})
}

func BenchmarkOf(b *testing.B) {
	message := "POST https://api.paylane.example/v2/captures: 503 Service Unavailable: order 88421 of customer 'ana', request 0198c1f2-aaaa-7bbb-8ccc-0123456789ab"
	for name, trace := range map[string]string{"message": "", "go": goTrace, "python": pythonTrace} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				Of("payments.capture", "upstream.unavailable", message, trace)
			}
		})
	}
}
