package config

import (
	"os"
	"regexp"
	"strings"

	"redrive/internal/handler"
	"redrive/internal/httpclient"
)

// readHTTP reads a service that does the work of a job. Package handler checks the
// address and reads the certificates when it builds the handler.
func readHTTP(v value) (h handler.HTTP, err error) {
	var secrets []Secret

	// The fields secret, secret_env and secret_file, of which each one that is there adds a
	// secret.
	fields := secretFields(&secrets)
	fields["url"] = into(&h.URL, value.text)
	fields["timeout"] = into(&h.Timeout, positive)
	fields["method"] = into(&h.Method, word(isMethod, "not a method; use POST, PUT, PATCH or DELETE"))
	fields["headers"] = into(&h.Headers, headers)
	fields["client_cert"] = into(&h.ClientCert, value.text)
	fields["client_key"] = into(&h.ClientKey, value.text)

	fields["ca"] = into(&h.CA, value.text)
	err = v.fields(fields)
	switch {
	case err != nil:
		return h, err
	case h.URL == "":
		return h, v.wrong("needs a url, for example http://127.0.0.1:9000/email")
	case len(secrets) > 1:
		return h, v.wrong("takes at most one of secret, secret_env and secret_file")
	case len(secrets) == 1:
		h.Secret = secrets[0]
	}

	return h, nil
}

func isMethod(m string) bool { return m == "POST" || m == "PUT" || m == "PATCH" || m == "DELETE" }

// headers reads headers that are sent with each request. Their values can hold
// variables of the environment, and no error shows them.
func headers(v value) (map[string]Secret, error) {
	all := map[string]Secret{}

	err := v.mapping()
	if err == nil {
		err = v.entries(func(name string, v value) error {
			canonical, problem := handler.CheckHeader(name)
			if problem != "" {
				return v.wrong("%s", problem)
			}

			if _, twice := all[canonical]; twice {
				return v.wrong("appears twice: header names are not case-sensitive")
			}

			// The text can be "Bearer ${TOKEN}".
			text, err := v.hidden()
			if err == nil {
				text, err = expanded(v, text)
			}

			if err == nil && (text == "" || strings.TrimSpace(text) != text || strings.ContainsFunc(text, isControl)) {
				err = v.wrong("the value is empty, begins or ends with a space, or contains a line break")
			}

			all[canonical] = httpclient.NewSecret(text)

			return err
		})
	}

	return all, err
}

func isControl(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }

// variable is a place in a text that a variable of the environment fills.
var variable = regexp.MustCompile(`\$\{([^}]*)\}`)

// expanded fills the variables of a text. One that is missing is an error.
func expanded(v value, text string) (_ string, err error) {
	text = variable.ReplaceAllStringFunc(text, func(place string) string {
		name := variable.FindStringSubmatch(place)[1]
		value := os.Getenv(name)
		if value == "" && err == nil {
			err = v.unset(name)
		}

		return value
	})

	return text, err
}
