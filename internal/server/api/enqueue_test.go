package api

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"redrive/internal/server/web"
)

func TestBody_LargeBatchesWaitTheirTurn(t *testing.T) {
	site, _ := newSite(t, web.Engine{})
	a := New(site, nil, time.Now())
	send := serve(t, a)
	for range cap(a.large) {
		a.large <- struct{}{}
	}
	large := `{"jobs":[{"type":"t","payload":"` + strings.Repeat("x", maxBody/2) + `"}` + strings.Repeat(" ", maxBody) + `]}`
	if status, kind := send("POST", v1+"/jobs/batch", large); status != http.StatusServiceUnavailable || kind != web.Overloaded.Code {
		t.Errorf("%d %s", status, kind)
	}
	for _, body := range []string{`{"jobs":[{"type":"t"}]}`, large} {
		if status, kind := send("POST", v1+"/jobs/batch", body); status != http.StatusCreated {
			t.Errorf("%d %s", status, kind)
		}
		if body != large {
			<-a.large
		}
	}
	if n := len(a.large); n != cap(a.large)-1 {
		t.Errorf("%d places are taken after the answer, want %d", n, cap(a.large)-1)
	}
}
