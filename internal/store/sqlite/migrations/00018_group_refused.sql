-- +goose Up

-- Until now the column dead counted refused dead letters too, which every other
-- count tells apart.
ALTER TABLE groups ADD COLUMN refused INTEGER NOT NULL DEFAULT 0; -- jobs whose dead letter for it was refused
UPDATE groups SET refused = r.n, dead = dead - r.n
    FROM (SELECT group_id, count(*) AS n FROM jobs WHERE letter = 'refused' AND letter <> '' GROUP BY group_id) AS r
    WHERE r.group_id = groups.id;

DROP INDEX groups_dead;
CREATE INDEX groups_dead ON groups (state, dead, last_seen, id, refused, retrying); -- the last two for tallies

PRAGMA user_version = 18;
