package config

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"redrive/internal/retention"
)

// TestCookbook reads the recipes that docs/cookbook.md repeats: each is right, and its
// examples come out as they expect.
func TestCookbook(t *testing.T) {
	t.Setenv("REDRIVE_WEBHOOK_SECRET", "for the test")
	passes := map[string]int{"yii2.yaml": 5, "daycry.yaml": 3, "policies.yaml": 4, "webhook.yaml": 0}
	files, err := filepath.Glob("testdata/cookbook/*.yaml")
	if err != nil || len(files) != len(passes) {
		t.Fatalf("%d recipes, want %d: %v", len(files), len(passes), err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			c, err := Load(file)
			if err != nil {
				t.Fatal(err)
			}
			passed, wrong := c.TryExamples()
			for _, err := range wrong {
				t.Error(err)
			}
			if want := passes[filepath.Base(file)]; passed != want {
				t.Errorf("%d examples passed, want %d", passed, want)
			}
		})
	}
}

func TestCookbook_IsWhatTheDocumentTells(t *testing.T) {
	readme, err := os.ReadFile("../../docs/cookbook.md")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("testdata/cookbook/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d recipes: %v", len(files), err)
	}
	for _, file := range files {
		recipe, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Contains(readme, append([]byte("```yaml\n"), recipe...)) {
			t.Errorf("docs/cookbook.md does not tell %s, word for word", file)
		}
	}
}

func TestCookbook_WebhookSaysWhatItIsSaidTo(t *testing.T) {
	t.Setenv("REDRIVE_WEBHOOK_SECRET", "for the test")
	c, err := Load("testdata/cookbook/webhook.yaml")
	if err != nil {
		t.Fatal(err)
	}
	w, ok := c.Webhook("orders")
	if !ok || w.URL != "https://hooks.example.org/dead-letters" || w.Secret.Reveal() != "for the test" || w.Timeout != 7*time.Second || w.Attempts != 3 {
		t.Errorf("webhook %+v, %v", w, ok)
	}
	if _, ok := c.Webhook("pings"); ok || c.DeadLetters("pings") || !c.DeadLetters("orders") {
		t.Error("want a webhook for orders alone, and dead letters off for pings alone")
	}
	if c.Expired("pings") != "discard" || c.Expired("orders") != "dead_letter" {
		t.Errorf("expired: %q, %q", c.Expired("pings"), c.Expired("orders"))
	}
	if r := c.Retention(); r.Ages[retention.DeadLetters] != 180*24*time.Hour || r.Count != 0 {
		t.Errorf("retention %+v", r)
	}
}
