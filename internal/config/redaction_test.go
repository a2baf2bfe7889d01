package config

import (
	"errors"
	"strings"
	"testing"
)

func TestRedaction_IsRead(t *testing.T) {
	c, err := Parse("redrive.yaml", []byte(`
redaction:
  keys: [+pan, -token, "tax id"]
  paths: ["$.customer.email"]
  types:
    email.*: ["$.to[*]"]
trash: {age: 3d}
`))
	if err != nil {
		t.Fatal(err)
	}
	got := string(c.Redactor().For("email.send").Payload([]byte(`{"pan":1,"token":2,"taxId":3,"customer":{"email":4},"to":[5],"password":6}`)))
	want := `{"pan":"••••••#1","token":2,"taxId":"••••••#2","customer":{"email":"••••••#3"},"to":["••••••#4"],"password":"••••••#5"}`
	if got != want {
		t.Errorf("shown is\n%s, want\n%s", got, want)
	}
	if c.Retention().Trash != 72*60*60*1e9 {
		t.Errorf("the trash is kept for %v", c.Retention().Trash)
	}
	if d := Default(); string(d.Redactor().Payload([]byte(`{"token":2}`))) != `{"token":"••••••#1"}` || d.Retention().Trash != 7*24*60*60*1e9 {
		t.Error("an empty file hides no token, or keeps the trash for another time than a week")
	}
}

func TestRedaction_SaysWhatIsWrongAndWhere(t *testing.T) {
	for text, want := range map[string]string{
		"redaction:\n  keys:\n  - +pan\n  - -nothing":   `:4: redaction.keys[1]: "-nothing" removes a name that is not hidden`,
		"redaction:\n  paths: [customer]":               `:2: redaction.paths[0]: "customer" is not a path such as`,
		"redaction:\n  types:\n    a: [\"$.b\", \"$\"]": `:3: redaction.types.a[1]: "$" is not a path such as`,
		"redaction:\n  types: {\"\": []}":               `is not a job type`,
		"redaction: [a]":                                `:1: redaction: `,
		"redaction: {key: []}":                          `redaction.key`,
		"trash: {age: 10s}":                             `:1: trash.age: 10s is shorter than a minute`,
	} {
		var wrong *Error
		if _, err := Parse("f", []byte(text)); !errors.As(err, &wrong) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q gave %v, want %q", text, err, want)
		}
	}
}
