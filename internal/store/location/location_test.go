package location_test

import (
	"errors"
	"strings"
	"testing"

	"redrive/internal/store/location"
	"redrive/internal/store/postgres"
	"redrive/internal/store/sqlite"
)

func TestOf_TellsServersFromFiles(t *testing.T) {
	for text, server := range map[string]bool{
		"redrive.db": false, "./postgres/redrive.db": false, "/data/postgres:.db": false, "postgres.db": false,
		"postgres://me:hidden@db/jobs": true, "postgresql://db/jobs?password=hidden": true, "POSTGRES://me:hidden@db/jobs": true,
		"postgres://me:hidden@[::1/jobs":  true,
		"postgres://me:12/hidden@db/jobs": true, "postgres://me:12?hidden@db/jobs": true, "postgres://me:12#hidden@db/jobs": true,
		"postgres://db/jobs#hidden": true,
	} {
		l := location.Of(text)

		_, isServer := l.Database(true).(postgres.Server)
		_, isFile := l.Database(true).(sqlite.File)
		if l.IsServer() != server || isServer != server || isFile == server {
			t.Errorf("%s: a server %t, opened as one %t, as a file %t", text, l.IsServer(), isServer, isFile)
		}

		if _, err := l.File(); errors.Is(err, location.ErrNoFile) != server {
			t.Errorf("%s: its file says %v", text, err)
		}

		if strings.Contains(l.String(), "hidden") || !server && l.String() != text {
			t.Errorf("%s is shown as %s", text, l)
		}
	}
}

// Two databases of Redrive can be in two schemas of one database.
func TestLocation_ShowsTheSchema(t *testing.T) {
	shown := location.Of("postgres://me:hidden@db/jobs?password=hidden&search_path=other%2Cpublic&sslmode=require").String()
	if shown != "postgres://me:xxxxx@db/jobs?search_path=other%2Cpublic" {
		t.Errorf("it is shown as %s", shown)
	}
}
