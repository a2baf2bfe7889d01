-- +goose Up

-- Where each source is, or was when it was attached last: preset.Preset.Address. The first
-- look at a source notes it. Keys in mirrored name records at this address only.
CREATE TABLE source_addresses (
    source  TEXT PRIMARY KEY, -- as redrive.yaml names it
    address TEXT NOT NULL
) STRICT;

PRAGMA user_version = 25;
