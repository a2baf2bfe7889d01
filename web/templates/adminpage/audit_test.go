package adminpage

import "testing"

func TestAudit_NamesReloads(t *testing.T) {
	if words := actionWords("config.reload"); words != "reloaded the configuration" {
		t.Errorf("a reload is named %q", words)
	}
}
