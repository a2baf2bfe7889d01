package config

import (
	"strings"
	"testing"
)

// What is wrong with a file is printed and logged, so no message has the password of a URL,
// wherever in the file the URL is.
func TestLoad_NoErrorHasThePasswordOfAURL(t *testing.T) {
	const url = "postgres://redrive:hunter2@db.internal/shop"
	for name, text := range map[string]string{
		"a list of sources":       `sources: "` + url + `"`,
		"a source":                `sources: {shop: "` + url + `"}`,
		"a list of acts":          `sources: {shop: {preset: laravel, allow: "` + url + `"}}`,
		"an act":                  `sources: {shop: {preset: laravel, allow: ["` + url + `"]}}`,
		"a preset":                `sources: {shop: {preset: "` + url + `"}}`,
		"a duration":              `sources: {shop: {preset: laravel, every: "` + url + `"}}`,
		"a list for a URL":        `sources: {shop: {preset: laravel, url: ["` + url + `"]}}`,
		"the name of a source":    `sources: {"` + url + `": {preset: laravel}}`,
		"the name of a field":     `sources: {shop: {"` + url + `": laravel}}`,
		"the name of a section":   `"` + url + `": {}`,
		"a section":               `hosts: {"` + url + `": 1}`,
		"a number":                `workers: "` + url + `"`,
		"a queue":                 `queues: {"` + url + `": {workers: x}}`,
		"a handler":               `handlers: {"a b": {http: {url: ["` + url + `"]}}}`,
		"a policy":                `policies: {x: "` + url + `"}`,
		"the policy of a queue":   `queues: {orders: {policy: "` + url + `"}}`,
		"a limit of a policy":     `policies: {x: {max_attempts: "` + url + `"}}`,
		"a file that is no YAML":  `sources: {shop: {url: "` + url + `"`,
		"a redaction":             `redaction: "` + url + `"`,
		"the age of dead letters": `retention: {dead_letters: "` + url + `"}`,
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse("redrive.yaml", []byte(text))
			if err == nil {
				t.Fatal("it is accepted")
			}
			if strings.Contains(err.Error(), "hunter") {
				t.Errorf("the error is %v", err)
			}
		})
	}
}
