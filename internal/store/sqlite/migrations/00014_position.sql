-- +goose Up

-- The item up to which all were worked through. Those that wait are behind it, and
-- need no index of their own.
ALTER TABLE operations ADD COLUMN position INTEGER NOT NULL DEFAULT 0;

UPDATE operations SET position = coalesce((SELECT min(n) - 1 FROM operation_items
    WHERE operation_id = operations.id AND state = 'pending' AND state <> 'done'), total);

DROP INDEX operation_items_state;
CREATE INDEX operation_items_left ON operation_items (operation_id, state, n) WHERE state IN ('skipped', 'failed');

PRAGMA user_version = 14;
