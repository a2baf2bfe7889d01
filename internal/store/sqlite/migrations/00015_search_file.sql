-- +goose Up

-- The index of texts moved to a file of its own, which is made anew from here.
DROP TABLE search;
DROP TABLE search_texts;

-- Which state of the index this is: both change with each of its transactions, here
-- after there. Where the index says otherwise it belongs to another database, and is
-- made anew.
ALTER TABLE redaction ADD COLUMN lineage TEXT NOT NULL DEFAULT '';
ALTER TABLE redaction ADD COLUMN position INTEGER NOT NULL DEFAULT 0;
UPDATE redaction SET lineage = lower(hex(randomblob(16)));

-- A job that was removed waits here, with execution -1, for its texts to be removed.

PRAGMA user_version = 15;
