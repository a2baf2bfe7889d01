package envelope

import (
	"bytes"
	"encoding/json"
	"testing"
	"unicode/utf8"

	"redrive/internal/job"
	"redrive/internal/retry"
)

const aBlock = `{"reason":"failed","error":"Café <b>&</b> \"a\"/b","exception":"http.503","failed_at":1795206563165,"original_queue":"orders","attempts":3,"lang":"go"}`

func TestAnnotate_ChangesNothingElse(t *testing.T) {
	tests := []struct{ raw, want string }{
		{`{"job":"u","attempts":0}`, `{"job":"u","attempts":3,"dead_letter":` + aBlock + `}`},
		{"{ \"attempts\" : 12 ,\n \"data\":{ }\t}\n", "{ \"attempts\" : 3 ,\n \"data\":{ },\"dead_letter\":" + aBlock + "\t}\n"},
		{`{"dead_letter":null ,"attempts":1}`, `{"dead_letter":` + aBlock + ` ,"attempts":3}`},
		{`{"dead\u005fletter":{"a":[1]},"x":1}`, `{"dead\u005fletter":` + aBlock + `,"x":1}`},
		{`{"attempts":"3"}`, `{"attempts":"3","dead_letter":` + aBlock + `}`},
		{`{}`, `{"dead_letter":` + aBlock + `}`},
		{` { } `, ` {"dead_letter":` + aBlock + ` } `},
	}
	for _, test := range tests {
		got, ok := Annotate([]byte(test.raw), aDeadLetter())
		if !ok || string(got) != test.want {
			t.Errorf("%s became\n%s, want\n%s", test.raw, got, test.want)
		}
	}
}

func TestAnnotate_ReasonsInTheWordsOfBabelQueue(t *testing.T) {
	words := map[retry.Reason]string{retry.AttemptsExhausted: "failed", retry.UnknownType: "unknown_urn"}
	for _, reason := range retry.Reasons() {
		annotated, _ := Annotate([]byte("{}"), job.DeadLetter{Reason: reason})
		var got struct {
			DeadLetter struct {
				Reason           string
				Error, Exception *string
			} `json:"dead_letter"`
		}
		if err := json.Unmarshal(annotated, &got); err != nil {
			t.Fatal(err)
		}
		want, own := words[reason]
		if !own {
			want = string(reason)
		}
		if got.DeadLetter.Reason != want || got.DeadLetter.Error != nil || got.DeadLetter.Exception != nil {
			t.Errorf("%s became %s", reason, annotated)
		}
	}
}

func TestTried_ChangesNothingElse(t *testing.T) {
	tests := []struct{ raw, want string }{
		{`{"job":"u","attempts":0}`, `{"job":"u","attempts":0}`},
		{`{"attempts":3,"dead_letter":{"reason":"failed"}}`, `{"attempts":0}`},
		{"{\"attempts\" : 3 , \n\"dead_letter\" : {} , \"x\":1.0 }", "{\"attempts\" : 0  , \"x\":1.0 }"},
		{`{"dead_letter":{}, "attempts":007e}`, ""},
		{`{"dead_letter":{} , "attempts":7}`, `{ "attempts":0}`},
		{`{ "dead_letter":{} }`, `{  }`},
		{`{"attempts":"3","dead_letter":1}`, `{"attempts":"3"}`},
		{`{"attempts":-1,"data":{"dead_letter":1,"attempts":5}}`, `{"attempts":-1,"data":{"dead_letter":1,"attempts":5}}`},
	}
	for _, test := range tests {
		got, ok := Tried([]byte(test.raw), 0)
		if ok != (test.want != "") || string(got) != test.want {
			t.Errorf("%s became\n%s, want\n%s", test.raw, got, test.want)
		}
	}
}

func TestTried_TellsTheAttempts(t *testing.T) {
	got, ok := Tried([]byte(`{"attempts":3,"dead_letter":{}}`), 2)
	if !ok || string(got) != `{"attempts":2}` {
		t.Errorf("got %s", got)
	}
}

func TestAnnotate_NotForWhatIsNoJSON(t *testing.T) {
	for _, raw := range []string{"", "[]", `{"a":1,"a":2}`, "{\"a\":\"\xff\"}"} {
		if annotated, ok := Annotate([]byte(raw), aDeadLetter()); ok {
			t.Errorf("%q became %q", raw, annotated)
		}
	}
}

// FuzzEnvelope: every input is readable or classified; what is cut and
// inserted leaves all else as it was; and the standard library agrees on what
// is in it.
func FuzzEnvelope(f *testing.F) {
	for _, s := range corpus(f) {
		f.Add([]byte(s.raw))
	}
	for _, seed := range []string{`{"dead_letter":{},"a":[{"b":"\\\""}]}`, `{ } `, "\xff", `{"attempts":1e400}`, `{"a":"\ud800"}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		before := bytes.Clone(raw)
		e, poison := Parse(raw)
		annotated, ok := Annotate(raw, aDeadLetter())
		if ok != (poison == nil || poison.Reason != retry.NotJSON) {
			t.Fatalf("annotated: %v, poison: %+v", ok, poison)
		}
		var members map[string]json.RawMessage
		err := json.Unmarshal(raw, &members)
		if !ok {
			if poison.Problem == "" {
				t.Fatal("no problem is told")
			}
			return
		}
		if err != nil || !utf8.Valid(raw) {
			t.Fatalf("the standard library refuses it: %v", err)
		}
		original, _ := Tried(raw, 0)
		again, _ := Tried(annotated, 0)
		if !bytes.Equal(original, again) || !bytes.Equal(raw, before) {
			t.Fatalf("original %q, after it was marked %q", original, again)
		}
		compare(t, annotated, original)
		if _, framed := members["__bq_frame"]; poison == nil && !framed && !bytes.Equal(members["data"], e.Data) {
			t.Fatalf("data %q, want %q", e.Data, members["data"])
		}
	})
}

// compare fails unless two envelopes differ in their attempts and block only.
func compare(t *testing.T, annotated, original []byte) {
	var marked, plain map[string]json.RawMessage
	if json.Unmarshal(annotated, &marked) != nil || json.Unmarshal(original, &plain) != nil {
		t.Fatalf("no JSON any more: %q, %q", annotated, original)
	}
	if string(marked["dead_letter"]) != aBlock || plain["dead_letter"] != nil {
		t.Fatalf("the block: %q, %q", annotated, original)
	}
	delete(marked, "dead_letter")
	if len(marked) != len(plain) {
		t.Fatalf("members were lost: %q, %q", annotated, original)
	}
	for name, value := range marked {
		if name != "attempts" && !bytes.Equal(value, plain[name]) {
			t.Fatalf("%s changed: %q, %q", name, value, plain[name])
		}
	}
}
