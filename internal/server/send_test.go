package server

import (
	"compress/gzip"
	"io"
	"net/http"
	"strings"
	"testing"

	"redrive/web/static"
)

// unpacked is the body of an answer, and whether it was compressed.
func (a answer) unpacked(t *testing.T) (body string, packed bool) {
	t.Helper()
	if a.Header.Get("Content-Encoding") == "" {
		return a.body, false
	}
	r, err := gzip.NewReader(strings.NewReader(a.body))
	if err != nil {
		t.Fatalf("what says that it is %q: %v", a.Header.Get("Content-Encoding"), err)
	}
	data, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(data), true
}

func TestSend_CompressesForWhoeverReadsIt(t *testing.T) {
	h := start(t)
	h.dead()
	plain := h.get("/api/v1/dead-letters", "Accept-Encoding", "identity").want(t, http.StatusOK)
	for accepts, want := range map[string]bool{
		"gzip": true, "br, GZIP;q=0.5": true, "deflate, gzip ; q=1.0": true,
		"": false, "identity": false, "gzip;q=0": false, "gzip;q=0.000": false, "br, x-gzip": false, "gzip;q=much": false,
	} {
		a := h.get("/api/v1/dead-letters", "Accept-Encoding", accepts).want(t, http.StatusOK)
		body, packed := a.unpacked(t)
		if packed != want || body != plain.body || a.Header.Get("Vary") != "Accept-Encoding" {
			t.Errorf("for %q: packed %v with %v", accepts, packed, a.Header)
		}
	}
}

// Pages and what programs read are compressed; what is small, a file to be taken
// away, and an answer without a body are not.
func TestSend_CompressesPagesAndTheAPI(t *testing.T) {
	h := start(t)
	id := h.dead()
	for path, want := range map[string]bool{
		"/": true, "/jobs": true, "/jobs/" + id: true, "/nowhere": true, "/jobs?state=wrong": true,
		"/api/v1/policies": true, "/api/v1/jobs/" + id: true, static.Script().Path: true, static.Stylesheet().Path: true,
		"/healthz": false, "/api/v1/me": false, "/export.csv": false, "/export.ndjson": false, "/audit.csv": false,
		"/jobs/" + id + "/payload": false, "/api/v1/jobs/" + unknownID: false,
	} {
		a := h.get(path, "Accept-Encoding", "gzip")
		if _, packed := a.unpacked(t); packed != want {
			t.Errorf("%s, status %d with %d bytes: packed %v, want %v", path, a.StatusCode, len(a.body), packed, want)
		}
		head := h.do(http.MethodHead, path, "", "Accept-Encoding", "gzip")
		if head.body != "" || head.StatusCode != a.StatusCode || head.Header.Get("Content-Encoding") != a.Header.Get("Content-Encoding") {
			t.Errorf("HEAD %s: %d with %d bytes and %v", path, head.StatusCode, len(head.body), head.Header)
		}
	}
}

// Nobody can choose what an answer repeats and learn from its length what else is
// in it: see Send.
func TestSend_NoLengthTellsASecret(t *testing.T) {
	h := start(t)
	id := h.dead()
	for site, want := range map[string]bool{"cross-site": false, "same-site": false, "unheard-of": false, "same-origin": true, "none": true, "": true} {
		for _, path := range []string{"/jobs?q=guess", "/api/v1/dead-letters?type=order.ship"} {
			headers := []string{"Accept-Encoding", "gzip", "Sec-Fetch-Site", site}
			if site == "" {
				headers = headers[:2]
			}
			if _, packed := h.get(path, headers...).want(t, http.StatusOK).unpacked(t); packed != want {
				t.Errorf("%s, asked for by %q: packed %v, want %v", path, site, packed, want)
			}
		}
	}
	for path, a := range map[string]answer{
		"/jobs/":        h.form("/jobs/"+id+"/reveal", "", "Accept-Encoding", "gzip"),
		"/api/v1/jobs/": h.post("/api/v1/jobs/"+id+"/reveal", "{}", "Accept-Encoding", "gzip"),
	} {
		if _, packed := a.want(t, http.StatusOK).unpacked(t); packed {
			t.Errorf("what is revealed below %s is compressed", path)
		}
	}
	lengths := map[int]bool{}
	for range 40 {
		lengths[len(h.get("/api/v1/dead-letters", "Accept-Encoding", "gzip").body)] = true
	}
	if len(lengths) < 5 { // by chance: once in 10^40
		t.Errorf("the same answer has only the lengths %v", lengths)
	}
}

func TestSend_WebsocketsAreOpenedAsEver(t *testing.T) {
	h := start(t)
	if open := sockets(t, h, "127.0.0.1", http.Header{"Accept-Encoding": {"gzip"}}); open == 0 {
		t.Error("no websocket was opened")
	}
}
