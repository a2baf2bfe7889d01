-- +goose Up

-- Discarded jobs without a dead letter, the oldest first. Retention looks for them every
-- minute, and in the index of their list it would read past all dead letters.
CREATE INDEX jobs_dropped ON jobs (changed_at, seq) WHERE list_state = 'discarded' AND letter = '';

PRAGMA user_version = 22;
