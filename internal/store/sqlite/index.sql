-- The redacted texts of jobs that failed, in lower case and with one blank for all white space. They decide whether a job has a
-- text; the index below only says which jobs can have it.
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
CREATE VIRTUAL TABLE search USING fts5 (
    text, content = '', contentless_delete = 1, detail = none, tokenize = 'trigram'
);

-- Each transaction that fills the index adds a segment. Merging costs more than
-- filling, so segments are merged while nothing fails, or when there are too many of
-- them (see search.Book). A merge may begin with two segments.
INSERT INTO search (search, rank) VALUES ('automerge', 0);
INSERT INTO search (search, rank) VALUES ('crisismerge', 1000);
INSERT INTO search (search, rank) VALUES ('usermerge', 2);

-- Which state of the main file the index belongs to (see index_mark there).
CREATE TABLE search_state (
    one      INTEGER PRIMARY KEY CHECK (one = 1),
    mark     TEXT    NOT NULL, -- drawn by chance for each transaction
    before   TEXT    NOT NULL, -- the mark before that
    revision INTEGER NOT NULL -- of the main file when the newest texts were read
) STRICT;
INSERT INTO search_state (one, mark, before, revision) VALUES (1, '', '', 0);

PRAGMA application_id = 0x52445253; -- "RDRS"
PRAGMA user_version = 3;
