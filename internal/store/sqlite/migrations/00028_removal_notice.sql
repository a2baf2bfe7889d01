-- +goose Up

-- Which of Redrive's own dead letters were announced as more than there may be: the oldest ones,
-- up to a place in the order of their failures. One that comes to a place before that later
-- makes the notice end before it.
CREATE TABLE removal_notice (
    announced_at INTEGER NOT NULL, -- when they were counted; 0: they are being counted, or there is no notice
    last_at      INTEGER NOT NULL, -- the place of the last one: when it changed,
    last_seq     INTEGER NOT NULL  -- and its number
) STRICT;
INSERT INTO removal_notice (announced_at, last_at, last_seq) VALUES (0, 0, 0);

PRAGMA user_version = 28;
