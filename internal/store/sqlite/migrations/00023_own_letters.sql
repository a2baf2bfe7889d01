-- +goose Up

-- Dead letters that are held here alone, the oldest first. Retention counts and removes
-- these, and a source can have a million beside them. The queue is in the index because
-- SQLite evaluates its own condition again, and would sort another index that has it.
CREATE INDEX jobs_letter_own ON jobs (changed_at, seq, queue) WHERE letter = 'stored' AND instr(queue, '@') = 0;

PRAGMA user_version = 23;
