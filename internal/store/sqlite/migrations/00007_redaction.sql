-- +goose Up

-- How secrets were taken out of what can be searched, as a fingerprint. When it
-- changes, all of that is forgotten, and the failures of jobs come to
-- search_backlog once more.
CREATE TABLE redaction (
    one         INTEGER PRIMARY KEY CHECK (one = 1),
    fingerprint TEXT    NOT NULL,
    again       INTEGER NOT NULL -- jobs before this seq did not come yet; 0 when all can be found
) STRICT;
INSERT INTO redaction (one, fingerprint, again) VALUES (1, '', 0);

PRAGMA user_version = 7;
