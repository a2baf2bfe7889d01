package handler_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"redrive/internal/handler"
	"redrive/internal/job"
)

// says returns the failure of a program that writes a text to stderr and one to
// stdout, and fails.
func says(t *testing.T, stderr, stdout string) *job.Failure {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"stderr": stderr, "stdout": stdout} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	command := []string{"/bin/sh", "-c", `cd "$0" && cat stderr >&2; cat stdout; exit 1`, dir}
	h := build(t, handler.Config{Exec: &handler.Exec{Command: command}})
	return failed(t, h, testJob())
}

const canary = "canary7f3a91"

// secretOutputs are outputs whose last line, or whose kept end, has a secret that
// only what stands before it tells to be one.
func secretOutputs() map[string]string {
	lines := func(n int, line string) string { return strings.Repeat(line+"\n", n/(len(line)+1)) }
	key := "-----BEGIN RSA PRIVATE KEY-----\n" + lines(3<<10, "MIIB"+canary+"Jq0f") + "-----END RSA PRIVATE KEY-----\n"
	return map[string]string{
		"the value is on the last line":             "login failed, password:\n  " + canary + "\n",
		"the value is on a line of its own":         "login failed with password=\n" + canary + "\n",
		"JSON over lines":                           "{\n  \"user\": \"ana\",\n  \"password\": {\n    \"old\": \"" + canary + "\"\n  }\n}\n",
		"a pair over lines":                         "{\n  \"key\": \"password\",\n  \"value\": \"" + canary + "\"\n}\n",
		"a quoted value over lines":                 "password: \"first\n" + canary + "\nlast\"\n",
		"a block of YAML":                           "failed:\n  password: |\n    first\n    " + canary + "\n",
		"a key, the last words":                     "cannot use the key\n" + key,
		"a key in which the kept end begins":        lines(4<<10, "starting") + key + lines(63<<10, "still working") + "gave up\n",
		"a key of which half is lost":               strings.Repeat("x", 70<<10) + "\n" + key + lines(126<<10, "still working") + "gave up\n",
		"a value in which the kept end begins":      lines(4<<10, "starting") + "password=\"" + lines(3<<10, canary) + "\"\n" + lines(62<<10, "still working") + "gave up\n",
		"one line that is longer than is kept":      `{"password":"` + strings.Repeat(canary, 20<<10) + `"}`,
		"the line before the kept end has it":       `password="` + strings.Repeat(canary, 20<<10) + "\"\n" + lines(60<<10, "still working") + "gave up\n",
		"the line whose beginning is lost names it": strings.Repeat("x", 200<<10) + " password:\n  " + canary + "\ngave up\n",
		"the element ends on another line":          "<login><password\n>" + canary + "</password></login>\n",
		"the content begins on another line":        "<login>\n<password>\n" + canary + "\n</password>\n</login>\n",
		"what was cut ends within an open value":    "connect failed: password='" + canary,
	}
}

func TestExec_HidesSecretsBeforeItCuts(t *testing.T) {
	for name, output := range secretOutputs() {
		t.Run(name, func(t *testing.T) {
			f := says(t, output, "")
			if strings.Contains(f.Message+f.Trace, canary) {
				t.Errorf("the message is %.200q, the trace %.300q", f.Message, f.Trace)
			}
			if f.Message == "" || f.Trace == "" {
				t.Errorf("nothing is said: %+v", f)
			}
			if out := says(t, "no luck\n", output); strings.Contains(out.Trace, canary) {
				t.Errorf("what it wrote to stdout is shown as %.300q", out.Trace)
			}
		})
	}
}

func TestExec_SaysTheLastLineThatSaysSomething(t *testing.T) {
	for output, want := range map[string]string{
		"first\nlast\n\n":                     "last",
		"a customer\npassword:\n  abc1":       "password:",
		"no such customer\npassword:\n  abc1": "no such customer",
		"read\n{\n  \"n\": 1\n}\n":            `"n": 1`,
		"}\n":                                 "}",
		"a\r\nb\r\n":                          "b",
	} {
		if f := says(t, output, ""); f.Message != want {
			t.Errorf("after %q the message is %q, want %q", output, f.Message, want)
		}
	}
}

func TestHTTP_HidesSecretsBeforeItCuts(t *testing.T) {
	for name, body := range map[string]string{
		"an excerpt":        "cannot log in with password:\n" + canary,
		"a long body":       "cannot log in, password=\"" + strings.Repeat("x ", 2000) + canary,
		"JSON":              `{"detail": {"field": "password", "value": "` + canary + `"}}`,
		"its own words":     `{"error": {"message": "denied", "details": [{"name": "api_key", "value": "` + canary + `"}]}}`,
		"JSON in a message": `{"error": {"message": "{\"key\":\"password\",\"value\":\"` + canary + `\"}"}}`,
		"a key":             "-----BEGIN PRIVATE KEY-----\n" + canary + "\n-----END PRIVATE KEY-----",
		"a form":            "<form>\n<input type=hidden name=\"password\"\n value=\"" + canary + "\"></form>",
	} {
		t.Run(name, func(t *testing.T) {
			web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(http.StatusUnprocessableEntity)
				w.Write([]byte(body))
			}))
			t.Cleanup(web.Close)
			f := failed(t, build(t, handler.Config{HTTP: &handler.HTTP{URL: web.URL}}), testJob())
			if strings.Contains(f.Message+f.Trace, canary) {
				t.Errorf("the message is %q, the trace %q", f.Message, f.Trace)
			}
		})
	}
}
