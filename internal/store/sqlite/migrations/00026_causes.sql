-- +goose Up

-- Why the job of an item had failed when it was selected: groups.id, or 0 when it had no error
-- group. The group may have been removed since.
ALTER TABLE operation_items ADD COLUMN cause INTEGER NOT NULL DEFAULT 0;

-- The causes of what could run when a scope was collected: error groups, and the types of jobs
-- that have none. Operations that were collected before have no causes.
CREATE TABLE operation_causes (
    operation_id INTEGER NOT NULL,
    cause        INTEGER NOT NULL, -- groups.id, or 0
    type         TEXT    NOT NULL, -- of the jobs
    n            INTEGER NOT NULL, -- jobs
    first        INTEGER NOT NULL, -- the lowest operation_items.n of them, before the operation is started
    left_out     INTEGER NOT NULL DEFAULT 0, -- 1: a person has resumed the operation without them
    PRIMARY KEY (operation_id, cause, type)
) STRICT, WITHOUT ROWID;

ALTER TABLE operations ADD COLUMN causes INTEGER NOT NULL DEFAULT 0;  -- how many there are
ALTER TABLE operations ADD COLUMN guarded INTEGER NOT NULL DEFAULT 0; -- 1: its guard has paused it
ALTER TABLE operations ADD COLUMN sift INTEGER NOT NULL DEFAULT 0;    -- from this operation_items.n on, those of causes that are left out are still to be skipped; 0: none

PRAGMA user_version = 26;
