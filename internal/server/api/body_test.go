package api

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"redrive/internal/apitype"
	"redrive/internal/invalid"
	"redrive/internal/job"
	"redrive/internal/rawjson"
	"redrive/internal/server/problem"
	"redrive/internal/server/web"
)

func FuzzNewJob(f *testing.F) {
	f.Add([]byte(`{"type":"t","queue":"q","payload":{"a":[1,2,"x\"y"]},"policy":{"max_attempts":3},"delay":"PT1S"}`))
	f.Add([]byte(`{"type":"t","run_at":"2030-01-01T00:00:00Z","meta":{"a":1},"ttr":"PT1M","priority":-5}`))
	f.Add([]byte(`{"type" : "t" , "payload" : "}{\\" }`))
	site, _ := newSite(f, web.Engine{})
	a := New(site, nil, time.Now())
	f.Fuzz(func(t *testing.T, data []byte) {
		if checkJSON(data) != nil {
			return
		}
		j, err := a.newJob("", data, true)
		if err != nil {
			if status := problem.Of(err).Kind.Status; status < 400 || status > 499 {
				t.Errorf("%s: %v is no 4xx", data, err)
			}
			return
		}
		var as map[string]json.RawMessage
		if err := json.Unmarshal(data, &as); err != nil {
			t.Fatalf("accepted %s: %v", data, err)
		}
		if want, ok := as["payload"]; ok && string(j.Payload) != string(want) {
			t.Errorf("payload %q, want %q", j.Payload, want)
		}
		if job.CheckType(j.Type) != nil || job.CheckQueue(j.Queue) != nil || j.Policy.Validate() != nil || j.Timeout <= 0 {
			t.Errorf("accepted %+v", j)
		}
	})
}

func FuzzParts(f *testing.F) {
	f.Add([]byte(`[1, "a,b]", {"x":[]}, null]`))
	f.Add([]byte(`["\\\"", [[]], -1e5 ]`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var want []json.RawMessage
		if checkJSON(data) != nil || json.Unmarshal(data, &want) != nil || want == nil {
			return
		}
		got := []json.RawMessage{}
		for part := range rawjson.Elements(data) {
			got = append(got, part)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("parts of %s: %s, want %s", data, got, want)
		}
	})
}

// A program is told of every member of every request what it must be.
func TestBody_EveryMemberHasAWordForWhatItMustBe(t *testing.T) {
	site, _ := newSite(t, web.Engine{})
	for _, e := range New(site, nil, time.Now()).Endpoints(nil) {
		if e.Request == nil || reflect.TypeOf(e.Request).Kind() != reflect.Struct {
			continue
		}
		for _, m := range apitype.Members(reflect.TypeOf(e.Request)) {
			into := reflect.New(reflect.TypeOf(e.Request)).Elem().FieldByIndex(m.Index)
			err := readValue(into, "field", json.RawMessage(`false0`), m.Tag.Get("want"))
			if field := new(invalid.Error); errors.As(err, &field) && strings.HasPrefix(field.Problem, "must be , ") {
				t.Errorf("%s: %s has none", e.Path, m.Name)
			}
		}
	}
}
