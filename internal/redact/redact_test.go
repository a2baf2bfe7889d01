package redact

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

func made(t testing.TB, o Options) *Redactor {
	t.Helper()
	r, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestPayload_HidesInPlace(t *testing.T) {
	r := made(t, Options{
		Keys:  []string{"+pan", "-token", "Tax Id"},
		Paths: []string{"$.customer.email", "$.items[*].card", "$.list[1]", `$["a.b"].c`, "$.whole"},
	})
	for name, c := range map[string]struct{ in, want string }{
		"names in any spelling": {`{"PassWord":"x","api-key":1,"Set_Cookie":"y","pan":"z","tax_id":"q","token":"kept"}`,
			`{"PassWord":"••••••#1","api-key":"••••••#2","Set_Cookie":"••••••#3","pan":"••••••#4","tax_id":"••••••#5","token":"kept"}`},
		"an escaped name":          {`{"p\u0061ssword":"x"}`, `{"p\u0061ssword":"••••••#1"}`},
		"every other byte is kept": {" { \"n\" : 12345678901234567890.10 ,\"secret\": [1,{\"a\":2}] , \"n\":1.0}\n", " { \"n\" : 12345678901234567890.10 ,\"secret\": \"••••••#1\" , \"n\":1.0}\n"},
		"members that come twice":  {`{"secret":1,"secret":2}`, `{"secret":"••••••#1","secret":"••••••#2"}`},
		"nothing to hide in it":    {`{"secret":null,"password":"","cookie":true,"cvv":[]}`, `{"secret":null,"password":"","cookie":true,"cvv":[]}`},
		"paths": {`{"customer":{"email":"a@b","name":"n"},"items":[{"card":1},{"card":"2"},{"no":3}],"list":[1,2,3],"a.b":{"c":4},"whole":{"x":1}}`,
			`{"customer":{"email":"••••••#1","name":"n"},"items":[{"card":"••••••#2"},{"card":"••••••#3"},{"no":3}],"list":[1,"••••••#4",3],"a.b":{"c":"••••••#5"},"whole":"••••••#6"}`},
		"JSON in a string":      {`{"body":"{\"password\":\"x\",\"n\":1.0}","customer":"{\"email\":\"e\"}"}`, `{"body":"{\"password\":\"••••••#1\",\"n\":1.0}","customer":"{\"email\":\"••••••#2\"}"}`},
		"text in a string":      {`{"log":"login password=x ok","url":"https://u:p@host/"}`, `{"log":"login password=••••••#1 ok","url":"https://••••••#2@host/"}`},
		"a document of one":     {`"password=x"`, `"password=••••••#1"`},
		"no JSON":               {`password=x and more`, `password=••••••#1 and more`},
		"the beginning of JSON": {`{"a":1,"customer":{"email":"someb`, `{"a":1,"customer":{"email":"••••••#1"`},
		"broken JSON":           {`{"a":1,"password":"x" oops "secret":"y"`, `{"a":1,"password":"••••••#1" oops "secret":"••••••#3"`},
		"nothing":               {"", ""},
	} {
		if masked := r.Payload([]byte(c.in)); string(masked) != c.want {
			t.Errorf("%s: %s\nis masked\n%s, want\n%s", name, c.in, masked, c.want)
		}
	}
	if r.Payload(nil) != nil {
		t.Error("a payload that is none became one")
	}
}

func TestPayload_OfTypesOfJobs(t *testing.T) {
	r := made(t, Options{Types: map[string][]string{"email.*": {"$.to"}, "sms": {"$.number"}}, Inside: []string{"data", "body.data"}})
	for typ, want := range map[string]string{
		"email.send": `{"to":"••••••#1","number":2}`, "sms": `{"to":1,"number":"••••••#1"}`, "other": `{"to":1,"number":2}`,
	} {
		if got := r.For(typ).Payload([]byte(`{"to":1,"number":2}`)); string(got) != want {
			t.Errorf("%s: %s, want %s", typ, got, want)
		}
	}
	envelope := `{"to":0,"data":{"to":1}}`
	if got := r.For("email.send").Around().Payload([]byte(envelope)); string(got) != `{"to":0,"data":{"to":"••••••#1"}}` {
		t.Errorf("in an envelope: %s", got)
	}
	framed := `{"to":0,"body":"{\"to\":0,\"data\":{\"to\":1}}"}`
	if got := r.For("email.send").Around().Payload([]byte(framed)); string(got) != `{"to":0,"body":"{\"to\":0,\"data\":{\"to\":\"••••••#1\"}}"}` {
		t.Errorf("in a frame: %s", got)
	}
	if got := r.For("sms").ByKey().Payload([]byte(`{"number":1,"pin":2}`)); string(got) != `{"number":1,"pin":"••••••#1"}` {
		t.Errorf("by key alone: %s", got)
	}
}

func TestPayload_FollowsJSONInStringsDownToTheEnd(t *testing.T) {
	r, deep := Default(), []byte(`{"password":"canary"}`)
	for range 12 {
		deep, _ = json.Marshal(map[string]string{"in": string(deep)})
	}
	if masked := r.Payload(deep); bytes.Contains(masked, []byte("canary")) {
		t.Errorf("twelve strings deep it is shown")
	}
	brackets := []byte(strings.Repeat("[", 5000) + `{"password":"canary"}` + strings.Repeat("]", 5000))
	if masked := r.Payload(brackets); bytes.Contains(masked, []byte("canary")) || !json.Valid(masked) {
		t.Errorf("five thousand brackets deep it is shown, or is no JSON: %.600s", masked)
	}
	if back, err := r.Merge(r.Payload(brackets), brackets); err != nil || !bytes.Equal(back, brackets) {
		t.Errorf("what is too deep is not put back: %v", err)
	}
}

// A payload is shown as its beginning: what can be hidden in the whole is hidden
// in each of its beginnings.
func TestPayload_HidesInWhatIsCutOff(t *testing.T) {
	r := made(t, Options{Paths: []string{"$.customer.email", "$.body.customer.email"}})
	inner := `{"customer":{"name":"Ünï \"x\"","email":"S1"},"list":[{"password":"S1"}]}`
	quoted, _ := json.Marshal(inner)
	twice, _ := json.Marshal(string(quoted))
	for _, document := range []string{inner, `{"n":1,"body":` + string(quoted) + `}`, `{"n":1,"body":` + string(twice) + `}`} {
		for cut := range len(document) + 1 {
			if shown := r.Payload([]byte(document[:cut])); bytes.Contains(shown, []byte("S1")) {
				t.Errorf("%s is shown as %s", document[:cut], shown)
			}
		}
	}
}

// A pair says beside its value what that is called.
func TestPayload_HidesTheValuesOfPairs(t *testing.T) {
	r := Default()
	for in, want := range map[string]string{
		`[{"name":"password","value":"S"},{"name":"user","value":"a"}]`:  `[{"name":"password","value":"••••••#1"},{"name":"user","value":"a"}]`,
		`{"Value" : "a pin=1" , "n":1, "Key":"DB_PASSWORD"}`:             `{"Value" : "••••••#2" , "n":1, "Key":"DB_PASSWORD"}`,
		`{"value":{"pin":1,"b":["token=x"]} ,"x":{"pin":2},"key":"otp"}`: `{"value":"••••••#4" ,"x":{"pin":"••••••#3"},"key":"otp"}`,
		`{"headers":[{"name":"Cookie","values":["a","b"]}]}`:             `{"headers":[{"name":"Cookie","values":"••••••#1"}]}`,
		`{"v":{"v":1,"k":"pin"},"k":"pin"}`:                              `{"v":"••••••#2","k":"pin"}`,
		`{"body":"[{\"name\":\"pin\",\"value\":1}]"}`:                    `{"body":"[{\"name\":\"pin\",\"value\":\"••••••#1\"}]"}`,
		`{"name":"password","value":"S`:                                  `{"name":"password","value":"••••••#1"`,
		`{"name":"password","value":null,"val":""}`:                      `{"name":"password","value":null,"val":""}`,
		`{"name":"token_count","value":3,"key":{"pin":false}}`:           `{"name":"token_count","value":3,"key":{"pin":false}}`,
		`["Host","x","Cookie","sid=1abc"]`:                               `["Host","x","Cookie","••••••#1"]`,
		`{"h":[["Host","x"],["X-Api-Key","1abcde"]]}`:                    `{"h":[["Host","x"],["X-Api-Key","••••••#1"]]}`,
		`{"required":["password","token","name"]}`:                       `{"required":["password","token","name"]}`,
		`{"name":"pin","in":{"value":1}}`:                                `{"name":"pin","in":{"value":1}}`,
	} {
		shown := r.Payload([]byte(in))
		if string(shown) != want {
			t.Errorf("%s\nis shown as\n%s, want\n%s", in, shown, want)
		}
		if !json.Valid([]byte(in)) {
			continue
		}
		if back, err := r.Merge([]byte(indented(t, shown)), []byte(in)); err != nil || indented(t, back) != indented(t, []byte(in)) {
			t.Errorf("%s becomes %s, %v", in, back, err)
		}
	}
}

// What begins like JSON and is none is read as a text from its beginning.
func TestPayload_HidesInWhatIsNoJSON(t *testing.T) {
	for _, said := range []string{`[password]=S1`, `[password: S1]`, `["password": "S1"]`, `{password:S1}`, `"password": "S1"`, `["password" => "S1"]`, `{"a":[password, "x", token=S1]}`} {
		if shown := Default().Payload([]byte(said)); bytes.Contains(shown, []byte("S1")) {
			t.Errorf("%s is shown as %s", said, shown)
		}
		quoted, _ := json.Marshal([]string{said})
		if shown := Default().Payload(quoted); bytes.Contains(shown, []byte("S1")) {
			t.Errorf("%s is shown as %s", quoted, shown)
		}
	}
}

func TestFingerprint_TellsOptionsApart(t *testing.T) {
	seen := map[string]bool{}
	for _, o := range []Options{
		{}, {Keys: []string{"+pan"}}, {Keys: []string{"-token"}}, {Paths: []string{"$.a"}}, {Paths: []string{"$.b"}},
		{Types: map[string][]string{"t": {"$.a"}}}, {Types: map[string][]string{"u": {"$.a"}}},
		{Paths: []string{"$.a[0]"}}, {Paths: []string{"$.a[1]"}}, {Paths: []string{"$.a[*]"}}, {Paths: []string{`$.a["*"]`}},
		{Paths: []string{"$.a[0].b"}}, {Paths: []string{"$.a[*].b"}}, {Paths: []string{`$.a["0"].b`}}, {Paths: []string{`$["a.b"]`}},
		{Types: map[string][]string{"t": {"$.a[0]"}}}, {Types: map[string][]string{"t": {"$.a[*]"}}},
	} {
		first, again := made(t, o).Fingerprint(), made(t, o).Fingerprint()
		if first != again || seen[first] {
			t.Errorf("%+v: %s and %s", o, first, again)
		}
		seen[first] = true
	}
}

func TestText(t *testing.T) {
	r := Default()
	for in, want := range map[string]string{
		"password=x&y=1":                                    "password=••••••",
		`{"password": "a b", 'token': 'c'}`:                 `{"password": "••••••", 'token': '••••••'}`,
		`said {\"secret\":\"a b\",\"n\":1}`:                 `said {\"secret\":\"••••••\",\"n\":1}`,
		"Authorization: Bearer abc.def ok":                  "Authorization: •••••• ok",
		"authorization=Digest username=x, response=y\nnext": "authorization=••••••\nnext",
		"Cookie: a=b; c=d\r\nHost: x":                       "Cookie: ••••••\r\nHost: x",
		"sent Bearer eyJhbGciOi1 and Basic dXNlcjpwYXNz1":   "sent Bearer •••••• and Basic ••••••",
		"basic authentication failed, bearer token missing": "basic authentication failed, bearer token missing",
		"amqp://guest:guest@mq:5672/ and redis://:p@h":      "amqp://••••••@mq:5672/ and redis://••••••@h",
		"https://example.org/a@b?token=x#y":                 "https://example.org/a@b?token=••••••",
		"map[password:hunter2 user:ana] {Secret:[a b] N:1}": "map[password:•••••• user:ana] {Secret:•••••• N:1}",
		"curl --password hunter2 -H 'x-api-key: abc'":       "curl --password •••••• -H 'x-api-key: ••••••",
		"<password>hunter2</password>":                      "<password>••••••</password>",
		"user[password]=hunter2 cfg[\"secret\"] = 'a b'":    "user[password]=•••••• cfg[\"secret\"] = '••••••'",
		"token := abc; api_key => def":                      "token := •••••• api_key => ••••••",
		"token: Bearer abc next":                            "token: •••••• next",
		"the password is wrong":                             "the password is wrong",
		"passwordless: yes, secretary=ann":                  "passwordless: yes, secretary=ann",
		"password=":                                         "password=",
		"**password**: S ok, **pin:** S ok":                 "**password**: •••••• ok, **pin:** •••••• ok",
		"password: *** user=ana":                            "password: •••••• user=ana",
		"password=\"unclosed value":                         "password=\"••••••",
		"\x1b[31mpin\x1b[0m=\x1b[1mS\x1b[0m ok":             "\x1b[31mpin\x1b[0m=\x1b[1m••••••\x1b[0m ok",
		"\x1b[1m{\x1b[0m\"pin\": 1\x1b[1m}":                 "\x1b[1m{\x1b[0m\"pin\": \"••••••\"\x1b[1m}",
		"\x1b[31mtoken\x1b[0m expired":                      "\x1b[31mtoken\x1b[0m expired",
		"":                                                  "",
	} {
		if got := r.Text(in); got != want {
			t.Errorf("%q\nis shown as %q\nwant        %q", in, got, want)
		}
		if got := r.Text(r.Text(in)); got != want {
			t.Errorf("%q is shown as %q the second time", in, got)
		}
	}
}

func TestMerge(t *testing.T) {
	r := made(t, Options{Paths: []string{"$.items[*].card"}})
	original := `{"password":"p","n":1.0,"items":[{"card":"a"},{"card":"b"}],"note":"token=x","said":"••••••#1"}`
	masked := r.Payload([]byte(original))
	for name, c := range map[string]struct{ edited, want string }{
		"untouched":         {string(masked), original},
		"another value":     {strings.Replace(string(masked), "1.0", "2", 1), strings.Replace(original, "1.0", "2", 1)},
		"laid out again":    {indented(t, masked), indented(t, []byte(original))},
		"a secret given up": {strings.Replace(string(masked), `"••••••#1",`, `"new",`, 1), strings.Replace(original, `"p"`, `"new"`, 1)},
		"escaped":           {strings.Replace(string(masked), `{"card":"••••••#2"}`, `{"card":"\u2022\u2022\u2022\u2022\u2022\u2022#2"}`, 1), original},
		"members gone":      {`{"items":[{"card":"••••••#2"}]}`, `{"items":[{"card":"a"}]}`},
		"nothing hidden":    {`{"x":1}`, `{"x":1}`},
		"no JSON":           {`x`, `x`},
	} {
		got, err := r.Merge([]byte(c.edited), []byte(original))
		if err != nil || string(got) != c.want {
			t.Errorf("%s: %s %v, want\n%s", name, got, err, c.want)
		}
	}
	for name, edited := range map[string]string{
		"under another name": `{"user":"••••••#1"}`,
		"of another element": `{"items":[{"card":"••••••#3"}]}`,
		"in a longer text":   `{"password":"x••••••#1"}`,
		"changed around it":  `{"note":"key=••••••#4"}`,
		"without its number": `{"password":"••••••"}`,
		"in no JSON":         `password: ••••••#1`,
		"where it was said":  `{"said":"••••••#2"}`,
		"deep in another":    `{"password":{"a":["••••••#1"]}}`,
	} {
		var moved *Moved
		if got, err := r.Merge([]byte(edited), []byte(original)); !errors.As(err, &moved) {
			t.Errorf("%s: %s, %v; want a refusal", name, got, err)
		}
	}
	if got, err := r.Merge([]byte("password=••••••#1 x"), []byte("password=y x")); err != nil || string(got) != "password=y x" {
		t.Errorf("a text: %s, %v", got, err)
	}
}

// A text that is no JSON can have dots of its own. They may stay, and go elsewhere in it; what
// is shown for a secret may not, since outside JSON nothing tells where it belongs.
func TestMerge_LeavesATextTheDotsThatItHad(t *testing.T) {
	r := Default()
	const original = "pin: S and ••••••, note=••••••#7 twice •••••• ••••••"
	if got := string(r.Payload([]byte(original))); got != "pin: ••••••#1 and ••••••, note=••••••#7 twice •••••• ••••••" {
		t.Fatal(got)
	}
	for edited, text := range map[string]string{
		"b ••••••":           "a ••••••",
		"•••••• a":           "a ••••••",
		"no dots":            "a ••••••",
		"pin: T and ••••••,": original,
		"pin: T\nnote=••••••#7 is here, •••••• and ••••••": original,
	} {
		got, err := r.Merge([]byte(edited), []byte(text))
		if err != nil || string(got) != edited {
			t.Errorf("%q of %q: %q, %v", edited, text, got, err)
		}
	}
	for edited, text := range map[string]string{
		"pin: ••••••#1 or ••••••,":    original,               // of a secret
		"pin: •••••• and ••••••":      original + " pin:",     // as many words, but its number is gone
		"pin=••••••":                  original,               // likewise
		"x••••••":                     "a ••••••",             // in another word
		"•••••• ••••••":               "a ••••••",             // one more
		"b ••••••":                    "a",                    // from elsewhere
		"pin: ••••••#1, as it was":    "pin: S, as ••••••#1,", // it had the same word
		"pin: ••••••#1 and no more #": "pin: S ••••••#1",
		`{"a": "••••••"}`:             "a",
	} {
		var moved *Moved
		if got, err := r.Merge([]byte(edited), []byte(text)); !errors.As(err, &moved) {
			t.Errorf("%q of %q: %q, %v; want a refusal", edited, text, got, err)
		}
	}
}

func indented(t *testing.T, data []byte) string {
	t.Helper()
	var b bytes.Buffer
	if err := json.Indent(&b, data, "", "  "); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestNew_SaysWhichOptionIsWrong(t *testing.T) {
	for value, o := range map[string]Options{
		"+":                            {Keys: []string{"+"}},
		"-nothing":                     {Keys: []string{"-nothing"}},
		strings.Repeat("x", 65):        {Keys: []string{strings.Repeat("x", 65)}},
		"customer.email":               {Paths: []string{"$.a", "customer.email"}},
		"$":                            {Paths: []string{"$"}},
		"$..a":                         {Paths: []string{"$..a"}},
		"$.a[-1]":                      {Paths: []string{"$.a[-1]"}},
		"$.a[?(@.b)]":                  {Paths: []string{"$.a[?(@.b)]"}},
		"$.*":                          {Paths: []string{"$.*"}},
		`$["a`:                         {Paths: []string{`$["a`}},
		"$.a[":                         {Types: map[string][]string{"t": {"$.a["}}},
		"$" + strings.Repeat(".a", 33): {Paths: []string{"$" + strings.Repeat(".a", 33)}},
	} {
		var wrong *Error
		if _, err := New(o); !errors.As(err, &wrong) || wrong.Value != value {
			t.Errorf("%+v gave %v", o, err)
		}
	}
}

// Of several wrong options, the same one is named each time.
func TestNew_NamesTheFirstWrongOption(t *testing.T) {
	o := Options{Types: map[string][]string{"c": {"c"}, "a": {"a"}, "d": {"d"}, "b": {"b"}}}
	for range 50 {
		var wrong *Error
		if _, err := New(o); !errors.As(err, &wrong) || wrong.Value != "a" {
			t.Fatalf("%v, want an error about a", err)
		}
	}
}

func FuzzPayload(f *testing.F) {
	for _, seed := range []string{
		`{"password":"x","items":[{"card":1.0}],"a":"{\"token\":\"y\"}"}`, `{"a":"password=1","a":"password=••••••#1"}`,
		`[{"secret":{"a":[1,2]}}]`, `password=x`, "\"\\ud800 token=x\"", `{"card":"••••••#1","items":[]}`, `{"url":"https://a:b@c"}`,
	} {
		f.Add([]byte(seed))
	}
	r := made(f, Options{Paths: []string{"$.items[*].card", "$.a.b", "$[0]"}})
	f.Fuzz(func(t *testing.T, data []byte) {
		masked := r.Payload(data)
		if json.Valid(data) && !json.Valid(masked) {
			t.Fatalf("%q is masked %q, which is no JSON", data, masked)
		}
		if !bytes.Contains(masked, []byte(Hidden)) && !bytes.Equal(masked, data) {
			t.Fatalf("%q is masked %q, and nothing is hidden", data, masked)
		}
		back, err := r.Merge(masked, data)
		if err != nil || !bytes.Equal(back, data) {
			t.Fatalf("%q\nis masked %q\nand merged %q, %v", data, masked, back, err)
		}
		var laid bytes.Buffer
		if !json.Valid(data) || json.Indent(&laid, masked, "", " ") != nil {
			return
		}
		if back, err = r.Merge(laid.Bytes(), data); err != nil {
			t.Fatalf("%q laid out again: %v", laid.Bytes(), err)
		}
		var want, got bytes.Buffer
		if json.Compact(&want, data) == nil && json.Compact(&got, back) == nil && !bytes.Equal(want.Bytes(), got.Bytes()) {
			t.Fatalf("%q laid out again is merged %q", data, back)
		}
	})
}

// A secret that stands under a name that is hidden is never shown, whatever
// stands around it.
func FuzzPayload_ShowsNoSecret(f *testing.F) {
	const canary = "c4n4ry-7e1d"
	f.Add("a", `{"b":[1,{"x":"y"}]}`, uint8(3))
	f.Add("password", `"password=1"`, uint8(1))
	r := Default()
	f.Fuzz(func(t *testing.T, name, other string, where uint8) {
		keys := defaultKeys()
		value := any(canary)
		for range where % 4 {
			value = map[string]any{name: value, "z": []any{value}}
		}
		document := map[string]any{name: other, "in": map[string]any{keys[int(where)%len(keys)]: value}}
		data, err := json.Marshal(document)
		if err != nil {
			t.Skip()
		}
		text, err := json.Marshal(map[string]any{name: string(data), "x": []any{json.RawMessage(data)}})
		if err != nil {
			t.Skip()
		}
		for _, whole := range [][]byte{data, text} {
			if masked := r.Payload(whole); bytes.Contains(masked, []byte(canary)) {
				t.Fatalf("%s\nis shown as\n%s", whole, masked)
			}
		}
		said := name + " " + keys[int(where)%len(keys)] + "=" + canary + " " + other
		if shown := r.Text(said); strings.Contains(shown, canary) && !strings.Contains(other+name, canary) {
			t.Fatalf("%q is shown as %q", said, shown)
		}
	})
}

// What is inside a job that could not be read has no type yet: what is hidden in
// any is hidden in it.
func TestPayload_WrappedHidesThePathsOfAllTypes(t *testing.T) {
	r, err := New(Options{
		Paths: []string{"$.card"}, Types: map[string][]string{"mail.*": {"$.to[*]"}, "sms": {"$.number"}}, Wrapped: "unread", Inside: []string{"data", "body.data"},
	})
	if err != nil {
		t.Fatal(err)
	}
	for document, want := range map[string]string{
		`{"data":{"card":1,"to":[2],"number":3,"n":4}}`: `{"data":{"card":"••••••#1","to":["••••••#2"],"number":"••••••#3","n":4}}`,
		`{"card":1,"data":{"to":2}}`:                    `{"card":"••••••#1","data":{"to":2}}`,
		`{"body":"{\"data\":{\"to\":[2]}}"}`:            `{"body":"{\"data\":{\"to\":[\"••••••#1\"]}}"}`,
		`{"data":{"card":1,"to":[2`:                     `{"data":{"card":"••••••#1","to":["••••••#2"`,
	} {
		if got := string(r.For("unread").Payload([]byte(document))); got != want {
			t.Errorf("%s becomes\n%s, want\n%s", document, got, want)
		}
	}
	if got := string(r.For("sms").Payload([]byte(`{"data":{"card":1}}`))); got != `{"data":{"card":1}}` {
		t.Errorf("a job of another type becomes %s", got)
	}
}

// What is JSON but for a few bytes is read to its end, as programs write it that
// know NaN and None, and people who forget a comma.
func TestPayload_ReadsWhatIsNearlyJSON(t *testing.T) {
	const pair, masked = `{"name":"pin","value":"abc"}`, `{"name":"pin","value":"` + Hidden + `#1"}`
	for _, document := range []string{
		`{"score":NaN,"headers":[%s]}`, `[None, undefined, %s]`, `[1e, -, %s]`, `[tru,%s,]`, `{"a":[1,],"b":%s}`,
		"[\"two\nlines\",%s]", `["x\x41y",%s]`, `["\u12",%s]`, "[1\n%s]", `{"a":1 "b":%s}`,
	} {
		data, want := strings.Replace(document, "%s", pair, 1), strings.Replace(document, "%s", masked, 1)
		if got := string(Default().Payload([]byte(data))); got != want {
			t.Errorf("%s\n is shown as %s", data, got)
		}
	}
}

// What is hardly JSON hides at least what it would if it were.
func TestPayload_HidesInBrokenJSON(t *testing.T) {
	const pair = `{"name":"pin","value":"SECRET"}`
	r := made(t, Options{Paths: []string{"$.a", "$.b[1]"}})
	tests := []struct{ kind, document string }{
		{"a comma is missing, and no white space is there", `["x""y",` + pair + `]`},
		{"a comma is missing, and no white space is there", `[{}` + pair + `]`},
		{"a comma is missing, and no white space is there", `[[1]` + pair + `]`},
		{"a comma is missing, and no white space is there", `{"x":"y""a":"SECRET"}`},
		{"a comma is missing, and no white space is there", `{"pin""value":1}` + "\n" + `{"pin": "SECRET"}`},
		{"a comma is missing after a secret", `{"pin":["x""y"],"c":` + pair + `}`},
		{"the value is a word", `{"a":SECRET}`},
		{"the value is a word", `{"a":'SECRET'}`},
		{"the value is a word with a string", `{"a":b"SECRET"}`},
		{"the value is a word with brackets", `{"a":Set(["SECRET"])}`},
		{"words with strings count as one", `{"b":[b"x","SECRET"]}`},
		{"words with brackets hide what is in them", `[Set(` + pair + `)]`},
		{"words with brackets hide what is in them", `[Set([` + pair + `]),` + pair + `]`},
		{"the name has an unknown escape", `{"pin\x":"SECRET"}`},
		{"the name has an unknown escape", "{\"pin\\\n\" :SECRET}"},
		{"the name has an unknown escape", `{"a\x":["SECRET"]}`},
		{"the name of a pair has an unknown escape", `[{"name":"pin\x","value":"SECRET"}]`},
		{"the name of a pair has an unknown escape", `[{"name\x":"pin","value":"SECRET"}]`},
		{"the name of a pair has an unknown escape", `[{"name":"pin","value\x":"SECRET"}]`},
		{"a string of JSON has an unknown escape", `["{\"x\":[{\"name\":\"pin\",\"value\":\"SECRET\"}]}\x"]`},
		{"a string of JSON has an unknown escape", "\"{\\\"a\\\":\\\"SECRET\\\" ,\\\"x\\\":1e\n}\""},
		{"what the string shows is a secret of the text", `["{\"x\":b\"[\\\\\",\"pin\\\":\n\"SECRET\"}",None]`},
		{"a secret of the text begins in the string", `["{\"x\":b\"[\\\\\",\"pin\\\":\n\"SECRET\"}","y"x]`},
	}
	for _, test := range tests {
		if got := string(r.Payload([]byte(test.document))); strings.Contains(got, "SECRET") {
			t.Errorf("%s: %s\n is shown as %s", test.kind, test.document, got)
		}
	}
}
