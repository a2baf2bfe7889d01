-- +goose Up

-- The state of the search index that belongs to this database. The index changes its
-- own mark first, this one is changed afterwards; an index with another mark is made
-- anew.
ALTER TABLE redaction RENAME COLUMN lineage TO index_mark;
ALTER TABLE redaction DROP COLUMN position;

PRAGMA user_version = 16;
