-- +goose Up

-- A dead letter is written once. Whether it is open, the letter of its job says;
-- who replayed or discarded it, the tables replays and trash. The columns open,
-- replayed_at, replayed_by, discarded_at and discarded_by are not read any more.
-- They stay: to remove them would write every letter anew.
DROP INDEX dead_letters_open;
DROP INDEX dead_letters_queue;
DROP INDEX dead_letters_reason;

-- Open letters are found by their jobs, which changed last when they failed.
CREATE INDEX jobs_letter_queue  ON jobs (queue, changed_at, seq)  WHERE letter = 'stored';
CREATE INDEX jobs_letter_reason ON jobs (reason, changed_at, seq) WHERE letter = 'stored';

PRAGMA user_version = 13;
