package web

import (
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestObject_LeavesOutWhatIsEmpty(t *testing.T) {
	at := time.Date(2030, 1, 2, 3, 4, 5, 6000, time.FixedZone("", 3600))
	o := Object{
		"a", 0, "b?", 0, "c?", 1, "at", at, "gone?", time.Time{}.UTC(), "never", time.Time{}, "d?", time.Duration(0), "ttr", time.Minute,
		"list", []Object(nil), "list?", []Object{}, "one?", Object{"x?", "", "y", "<"}, "none?", Object(nil), "raw", Raw(`{ "n": 1.0 }`),
	}
	const want = `{"a":0,"c":1,"at":"2030-01-02T02:04:05.000006Z","never":"","ttr":"PT1M","list":[],` +
		`"one":{"y":"\u003c"},"raw":{ "n": 1.0 }}` + "\n"
	if got := string(o.Encode()); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got := (Object{}).Encode(); string(got) != "{}\n" {
		t.Errorf("an empty object is %s", got)
	}
}

func TestObject_IsARowOfATable(t *testing.T) {
	o := Object{"n", int64(0), "run?", 0, "at", time.Time{}, "why?", "so"}
	if got := o.Names(); !slices.Equal(got, []string{"n", "run", "at", "why"}) {
		t.Errorf("names %q", got)
	}
	if got := o.Texts(); !slices.Equal(got, []string{"0", "", "", "so"}) {
		t.Errorf("texts %q", got)
	}
}

func FuzzLocalPath(f *testing.F) {
	for _, s := range []string{"/", "/jobs?state=x#run-2", "//evil", `/\evil`, "/%09/evil", "/.//evil", "https://evil", "/\x01"} {
		f.Add(s)
	}
	base, err := url.Parse("http://127.0.0.1:8080/jobs/x")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, back string) {
		to, ok := LocalPath(back)
		if !ok {
			return
		}
		u, err := base.Parse(to)
		if err != nil || u.Host != base.Host || u.Scheme != base.Scheme {
			t.Errorf("%q leads to %v, %v", back, u, err)
		}
		if strings.ContainsAny(to, "\\\r\n\t") || !strings.HasPrefix(to, "/") || strings.HasPrefix(to, "//") {
			t.Errorf("a browser may read %q as another host", to)
		}
	})
}
