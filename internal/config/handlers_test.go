package config

import (
	"fmt"
	"strings"
	"testing"
)

func service(fields string) string {
	return "handlers:\n  a:\n    http: {url: 'https://h/', " + fields + "}"
}

func TestHandlers_CanAuthenticateThemselves(t *testing.T) {
	t.Setenv("REDRIVE_TOKEN", "t0ken")
	t.Setenv("REDRIVE_SIGN", "s3cret")
	h := parse(t, service(`method: PUT, headers: {authorization: "Bearer ${REDRIVE_TOKEN}", X-Team: "$5"}, secret_env: REDRIVE_SIGN,
      client_cert: c.pem, client_key: c.key, ca: ca.pem`)).Handlers["a"].HTTP
	if h.Method != "PUT" || h.Headers["Authorization"].Reveal() != "Bearer t0ken" || h.Headers["X-Team"].Reveal() != "$5" ||
		h.Secret.Reveal() != "s3cret" || h.ClientCert != "c.pem" || h.ClientKey != "c.key" || h.CA != "ca.pem" {
		t.Errorf("%+v %v", h, h.Headers["Authorization"].Reveal())
	}
	if shown := fmt.Sprintf("%v %+v %#v", h, *h, *h); strings.Contains(shown, "t0ken") || strings.Contains(shown, "s3cret") {
		t.Errorf("shown: %s", shown)
	}
}

func TestParse_HandlersThatCannotAuthenticateThemselves(t *testing.T) {
	t.Setenv("REDRIVE_EMPTY", "")
	const place = "redrive.yaml:3: handlers.a.http."
	for _, test := range []struct{ fields, want string }{
		{`method: GET`, place + `method: "GET" is not a method; use POST, PUT, PATCH or DELETE`},
		{`headers: {"X Y": a}`, place + "headers.X Y: is not the name of a header"},
		{`headers: {Host: a}`, place + "headers.Host: Host is set by Redrive"},
		{`headers: {redrive-job-id: a}`, place + "headers.redrive-job-id: headers that begin with Redrive- are set by Redrive"},
		{`headers: {X-A: a, x-a: b}`, place + "headers.x-a: appears twice"},
		{`headers: {X-A: s3cret 31337, X-B: 31337}`, place + "headers.X-B: must be a string; put it in quotes"},
		{`headers: {X-A: "s3cret\r\nX-B: c"}`, place + "headers.X-A: the value is empty, begins or ends with a space, or contains a line break"},
		{`headers: {X-A: ""}`, place + "headers.X-A: the value is empty"},
		{`headers: {X-A: "s3cret ${REDRIVE_NOTHING}"}`, place + `headers.X-A: the environment variable "REDRIVE_NOTHING" is missing or empty`},
		{`headers: {X-A: "${REDRIVE_EMPTY}"}`, place + `headers.X-A: the environment variable "REDRIVE_EMPTY" is missing or empty`},
		{`headers: s3cret`, place + "headers: must be a mapping"},
		{`secret: s3cret, secret_env: PATH`, "redrive.yaml:3: handlers.a.http: takes at most one of secret, secret_env and secret_file"},
		{`secret: " "`, place + "secret: the secret is empty or blank"},
		{`secret_env: REDRIVE_NOTHING`, place + `secret_env: the environment variable "REDRIVE_NOTHING" is missing or empty`},
	} {
		_, err := Parse("redrive.yaml", []byte(service(test.fields)))
		if err == nil || !strings.HasPrefix(err.Error(), test.want) {
			t.Errorf("%s\n%v, want\n%s…", test.fields, err, test.want)
		}
		if err != nil && (strings.Contains(err.Error(), "s3cret") || strings.Contains(err.Error(), "31337")) {
			t.Errorf("the error shows the secret: %v", err)
		}
	}
}
