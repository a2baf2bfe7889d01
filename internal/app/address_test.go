package app

import (
	"errors"
	"testing"

	"redrive/internal/usage"
)

func TestCheckListen_BindMatrix(t *testing.T) {
	for address, local := range map[string]bool{
		"127.0.0.1:8080": true, "127.0.0.2:1": true, "[::1]:8080": true, "localhost:0": true, "LOCALHOST:1": true, "[::ffff:127.0.0.1]:1": true,
		":8080": false, "0.0.0.0:8080": false, "[::]:8080": false, "10.0.0.1:80": false, "192.168.1.2:80": false,
		"example.org:80": false, "localhost.example.org:80": false, "169.254.1.1:80": false, "0:80": false,
	} {
		if err := CheckListen(address, false); (err == nil) != local {
			t.Errorf("%s without the flag: %v, want allowed %v", address, err, local)
		}
		if err := CheckListen(address, true); err != nil {
			t.Errorf("%s with the flag: %v", address, err)
		}
	}
	for _, address := range []string{"", "8080", "127.0.0.1", "127.0.0.1:", "::1"} {
		if err := CheckListen(address, true); !errors.As(err, new(usage.Error)) {
			t.Errorf("%q: %v, want a usage error", address, err)
		}
	}
}
