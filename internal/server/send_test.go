package server

import (
	"compress/gzip"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/andybalholm/brotli"

	"redrive/web/static"
)

// unpacked is the body of an answer, and whether it was compressed.
func (a answer) unpacked(t *testing.T) (body string, packed bool) {
	t.Helper()
	var r io.Reader
	var err error
	switch a.Header.Get("Content-Encoding") {
	case "":
		return a.body, false
	case "br":
		r = brotli.NewReader(strings.NewReader(a.body))
	default:
		r, err = gzip.NewReader(strings.NewReader(a.body))
	}
	if err != nil {
		t.Fatalf("what says that it is %q: %v", a.Header.Get("Content-Encoding"), err)
	}
	data, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(data), true
}

func TestSend_CompressesAsTheClientAccepts(t *testing.T) {
	h := start(t)
	h.dead()
	plain := h.get("/api/v1/dead-letters", "Accept-Encoding", "identity").want(t, http.StatusOK)
	for accepts, want := range map[string]string{
		"gzip": "gzip", "GZIP;q=0.5": "gzip", "deflate, gzip ; q=1.0": "gzip", "br;q=0, gzip": "gzip",
		"br": "br", "gzip, deflate, br, zstd": "br", "gzip, BR ; q=0.5": "br", "gzip;q=0, br": "br",
		"": "", "identity": "", "gzip;q=0": "", "gzip;q=0.000": "", "zstd, x-gzip": "", "gzip;q=much": "",
	} {
		a := h.get("/api/v1/dead-letters", "Accept-Encoding", accepts).want(t, http.StatusOK)
		body, _ := a.unpacked(t)
		if a.Header.Get("Content-Encoding") != want || body != plain.body || a.Header.Get("Vary") != "Accept-Encoding" {
			t.Errorf("for %q: want %q, got %v", accepts, want, a.Header)
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

// No attacker can choose what an answer repeats and learn from its length what
// else is in it: see Send.
func TestSend_NoLengthTellsASecret(t *testing.T) {
	h := start(t)
	id := h.dead()
	for _, coding := range []string{"gzip", "br"} {
		accepts := []string{"Accept-Encoding", coding}
		for site, want := range map[string]bool{"cross-site": false, "same-site": false, "unheard-of": false, "same-origin": true, "none": true, "": true} {
			for _, path := range []string{"/jobs?q=guess", "/api/v1/dead-letters?type=order.ship"} {
				headers := append(accepts[:2:2], "Sec-Fetch-Site", site)
				if site == "" {
					headers = headers[:2]
				}
				if _, packed := h.get(path, headers...).want(t, http.StatusOK).unpacked(t); packed != want {
					t.Errorf("%s, asked for by %q: packed %v, want %v", path, site, packed, want)
				}
			}
		}
		for path, a := range map[string]answer{
			"/jobs/": h.form("/jobs/"+id+"/reveal", "", accepts...), "/api/v1/jobs/": h.post("/api/v1/jobs/"+id+"/reveal", "{}", accepts...),
		} {
			if _, packed := a.want(t, http.StatusOK).unpacked(t); packed {
				t.Errorf("what is revealed below %s is compressed", path)
			}
		}
		lengths := map[int]bool{}
		for range 40 {
			a := h.get("/api/v1/dead-letters", accepts...)
			a.unpacked(t)
			lengths[len(a.body)] = true
		}
		if len(lengths) < 5 { // by chance: once in 10^40
			t.Errorf("with %s, the same answer has only the lengths %v", coding, lengths)
		}
	}
}

func TestSend_WebsocketsAreOpenedAsEver(t *testing.T) {
	h := start(t)
	if open := sockets(t, h, "127.0.0.1", http.Header{"Accept-Encoding": {"gzip"}}); open == 0 {
		t.Error("no websocket was opened")
	}
}
