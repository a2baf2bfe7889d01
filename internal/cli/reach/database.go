package reach

import (
	"strings"

	"redrive/internal/store/location"
	"redrive/internal/store/sqlite"
	"redrive/internal/usage"
)

// CheckDatabase refuses a URL of a database in which Redrive cannot keep its jobs, which a flag
// names.
func CheckDatabase(flag, text string) error {
	scheme, _, isURL := strings.Cut(text, "://")
	if !isURL || location.Of(text).IsServer() {
		return nil
	}

	return usage.Errorf("--%s %s is a URL of %s, and Redrive keeps its jobs in a file or on PostgreSQL: name one of them. "+
		"To see dead letters that are in another database, add it to sources in the configuration (docs/sources.md)", flag, text, scheme)
}

// File is the database in a file. advice says what to do with one on a server.
func File(text, advice string) (sqlite.File, error) {
	file, err := location.Of(text).File()
	if err != nil {
		return file, usage.Errorf("--db %s: %w. %s", location.Of(text), err, advice)
	}

	return file, nil
}
