-- +goose Up

-- How far dashboard migrate has come, which makes this database a copy of another one. While it
-- has rows, the copy is not finished, and nothing else may be done with the database.
CREATE TABLE migration (
    name   TEXT    NOT NULL PRIMARY KEY, -- of a table
    source TEXT    NOT NULL, -- what is copied, as people call it; never with a password
    mark   TEXT    NOT NULL, -- which database that is, and in which state
    copied INTEGER NOT NULL, -- rows of the table so far, in the order of its key
    mended INTEGER NOT NULL  -- texts among them that had characters which no database can be sure to keep
) STRICT, WITHOUT ROWID;

PRAGMA user_version = 29;
