package api

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"redrive/internal/server/limit"
	"redrive/internal/server/problem"
	"redrive/internal/server/web"
)

func TestBody_LargeBatchesWaitTheirTurn(t *testing.T) {
	site, _ := newSite(t, web.Engine{})
	a := New(site, nil, time.Now())
	send := serve(t, a)
	others := []limit.Address{limit.AddressOf("192.0.2.1"), limit.AddressOf("192.0.2.2")}
	for _, other := range others {
		if why := a.Limits.Large.Take(other, 1); why != "" {
			t.Fatal(why)
		}
	}
	large := `{"jobs":[{"type":"t","payload":"` + strings.Repeat("x", maxBody/2) + `"}` + strings.Repeat(" ", maxBody) + `]}`
	if status, kind := send("POST", v1+"/jobs/batch", large); status != http.StatusServiceUnavailable || kind != problem.Overloaded.Code {
		t.Errorf("%d %s", status, kind)
	}
	for _, body := range []string{`{"jobs":[{"type":"t"}]}`, large} {
		if status, kind := send("POST", v1+"/jobs/batch", body); status != http.StatusCreated {
			t.Errorf("%d %s", status, kind)
		}
		if body != large {
			a.Limits.Large.Give(others[0], 1)
		}
	}
	if why := a.Limits.Large.Take(others[0], 1); why != "" {
		t.Errorf("the place is not free after the answer: %s", why)
	}
}
