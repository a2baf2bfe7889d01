-- +goose Up

-- A worker takes more jobs in hand than can start at once. While a job is active
-- this says 1 as long as nobody has written down that it has begun. It stays 1 when
-- its process died meanwhile: the next execution counts from its claim on.
ALTER TABLE jobs ADD COLUMN unbegun INTEGER NOT NULL DEFAULT 0;

PRAGMA user_version = 12;
