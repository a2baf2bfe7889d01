-- +goose Up

-- Who may use the dashboard and the API. Secrets are never kept: passwords as
-- argon2id, sessions and tokens as SHA-256 of their random values.
CREATE TABLE users (
    name       TEXT    NOT NULL PRIMARY KEY,
    role       TEXT    NOT NULL,           -- viewer, operator, admin
    password   TEXT    NOT NULL,           -- $argon2id$…
    created_at INTEGER NOT NULL,
    changed_at INTEGER NOT NULL            -- password or role; older sessions are over
) STRICT, WITHOUT ROWID;

CREATE TABLE sessions (
    hash       BLOB    NOT NULL PRIMARY KEY,
    user       TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    seen_at    INTEGER NOT NULL,
    address    TEXT    NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE tokens (
    id         TEXT    NOT NULL PRIMARY KEY,
    hash       BLOB    NOT NULL,
    name       TEXT    NOT NULL,
    role       TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    created_by TEXT    NOT NULL,
    expires_at INTEGER NOT NULL,
    used_at    INTEGER NOT NULL DEFAULT 0,
    revoked_at INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;

PRAGMA user_version = 5;
