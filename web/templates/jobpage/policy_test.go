package jobpage

import "testing"

func TestOrigins_InWords(t *testing.T) {
	for code, want := range map[string]string{
		"":                            "",
		"job":                         "from the job itself",
		"type:email.*":                "from the type email.*",
		"queue:orders":                "from the queue orders",
		"default":                     "from the configured default",
		"built_in":                    "built in",
		"rule:long-reports":           "set by the rule long-reports",
		"queue:orders/preset:daycry":  "preset daycry, named by the queue orders",
		"default/policy:slow":         "policy slow, named by the configured default",
		"rule:big/policy:slow":        "policy slow, named by the rule big",
		"type:urn:a/b/preset:initphp": "preset initphp, named by the type urn:a/b",
		"oracle":                      "from oracle",
	} {
		if got := originWords(code); got != want {
			t.Errorf("%s reads %q, want %q", code, got, want)
		}
	}
}
