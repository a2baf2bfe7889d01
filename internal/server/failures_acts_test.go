package server

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
)

func TestGroups_AreDecidedByJSONOnly(t *testing.T) {
	h := start(t)
	fingerprint, _ := h.failing()
	at := "/api/v1/failures/" + fingerprint + "/"
	for _, act := range []string{"resolve", "ignore", "reopen"} {
		h.do(http.MethodPost, at+act, "").want(t, http.StatusOK)
		h.post(at+act, "{}").want(t, http.StatusOK)
		h.form(at+act, "how=always").want(t, http.StatusUnsupportedMediaType)
		h.do(http.MethodPost, at+act, "{}", "Content-Type", "text/plain").want(t, http.StatusUnsupportedMediaType)
		h.post(at+act, `{"a":1}`).want(t, http.StatusUnprocessableEntity)
	}
}

func TestGroups_AreIgnoredAsFarAsTheBodySays(t *testing.T) {
	h := start(t)
	fingerprint, _ := h.failing()
	at := "/api/v1/failures/" + fingerprint + "/ignore"
	for body, field := range map[string]string{
		`{"failures":0}`:                                "failures",
		`{"failures":2000000000}`:                       "failures",
		`{"failures_an_hour":-1}`:                       "failures_an_hour",
		`{"until":"2020-01-01T00:00:00Z"}`:              "until",
		`{"until":"soon"}`:                              "until",
		`{"for":"PT0S"}`:                                "for",
		`{"for":"long"}`:                                "for",
		`{"until":"2999-01-01T00:00:00Z","for":"PT1H"}`: "for",
		`{"for":"PT1H","until":"2999-01-01T00:00:00Z"}`: "until",
	} {
		f := decode[problemAnswer](t, h.post(at, body).want(t, http.StatusUnprocessableEntity))
		if f.Error.Field != field || f.Error.Code != "invalid_value" {
			t.Errorf("%s: %+v, want a refusal of %s", body, f.Error, field)
		}
	}
	type said struct {
		Group struct {
			State  string
			Until  string
			Count  int64 `json:"until_failures"`
			Hourly int64 `json:"until_failures_an_hour"`
		}
	}
	g := decode[said](t, h.post(at, `{"for":"PT1H","failures":5,"failures_an_hour":7}`).want(t, http.StatusOK)).Group
	if g.State != "ignored" || g.Until == "" || g.Count < 6 || g.Hourly != 7 {
		t.Errorf("the group is %+v", g)
	}
}

func TestGroups_TheFilterIsBounded(t *testing.T) {
	h := start(t)
	h.dead()
	for _, q := range []string{strings.Repeat("a", 51_000), "\xff", "a\x00b"} {
		path := "?q=" + url.QueryEscape(q)
		if f := decode[problemAnswer](t, h.get("/api/v1/failures"+path).want(t, http.StatusBadRequest)); f.Error.Field != "q" {
			t.Errorf("%+v", f)
		}
		h.get("/failures"+path).want(t, http.StatusBadRequest)
	}
	h.get("/failures?q=wa").want(t, http.StatusOK)
}
