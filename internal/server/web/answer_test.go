package web

import (
	"net/url"
	"strings"
	"testing"
)

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
