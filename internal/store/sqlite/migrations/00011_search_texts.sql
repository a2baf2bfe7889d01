-- +goose Up

-- What can be searched of jobs that failed, redacted and in small letters: it has
-- the last word on whether a job has a text. The index only says which jobs can
-- have it.
CREATE TABLE search_texts (
    job_seq   INTEGER PRIMARY KEY,
    ident     TEXT NOT NULL,
    kind      TEXT NOT NULL, -- the type
    failure   TEXT NOT NULL, -- the newest one
    meta_text TEXT NOT NULL,
    content   TEXT NOT NULL  -- the payload
) STRICT;

-- Trigrams without their places: a third of the room, and half of the time to
-- write and to merge them.
DROP TABLE search;
CREATE VIRTUAL TABLE search USING fts5 (
    text, content = '', contentless_delete = 1, detail = none, tokenize = 'trigram'
);

-- Each transaction that fills the index adds a segment. Merging costs more than
-- filling, so it is done when nothing fails, or when there are many (see
-- search.Book). Two are enough then.
INSERT INTO search (search, rank) VALUES ('automerge', 0);
INSERT INTO search (search, rank) VALUES ('crisismerge', 1000);
INSERT INTO search (search, rank) VALUES ('usermerge', 2);

-- Every failure is made searchable anew, in the background.
UPDATE redaction SET again = (SELECT coalesce(max(seq), 0) + 1 FROM jobs) WHERE EXISTS (SELECT 1 FROM jobs);

PRAGMA user_version = 11;
