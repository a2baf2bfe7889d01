package postgres

import "testing"

// The store writes SQL that both databases read but for some words.
func TestTranslate_WritesWhatPostgreSQLReads(t *testing.T) {
	for query, want := range map[string]string{
		`SELECT 1 FROM jobs WHERE seq IN (SELECT value FROM json_each($1))`:                                                `SELECT 1 FROM jobs WHERE seq = ANY ($1)`,
		`SELECT 1 FROM jobs WHERE seq NOT IN (SELECT value FROM json_each($2)) AND a = $1`:                                 `SELECT 1 FROM jobs WHERE seq <> ALL ($2) AND a = $1`,
		`SELECT e.value FROM json_each($1) AS e`:                                                                           `SELECT e.value FROM unnest($1) AS e(value)`,
		`INSERT INTO t SELECT value, $2 FROM json_each($1) WHERE true`:                                                     `INSERT INTO t SELECT value, $2 FROM unnest($1) AS list(value) WHERE true`,
		`SELECT value ->> 0 FROM json_each($1)`:                                                                            `SELECT value ->> 0 FROM jsonb_array_elements(CAST($1 AS jsonb)) AS list(value)`,
		`SELECT e.value ->> 1 FROM json_each($1) AS e JOIN t ON true`:                                                      `SELECT e.value ->> 1 FROM jsonb_array_elements(CAST($1 AS jsonb)) AS e(value) JOIN t ON true`,
		`SELECT 1 FROM jobs AS j INDEXED BY jobs_due WHERE a = 1`:                                                          `SELECT 1 FROM jobs AS j WHERE a = 1`,
		`FROM jobs AS j CROSS JOIN bodies AS b ON b.job_seq = j.seq`:                                                       `FROM jobs AS j JOIN bodies AS b ON b.job_seq = j.seq`,
		`FROM (SELECT 1) AS q CROSS JOIN jobs AS j WHERE true`:                                                             `FROM (SELECT 1) AS q CROSS JOIN jobs AS j WHERE true`,
		`UPDATE OR FAIL jobs SET run = 1`:                                                                                  `UPDATE jobs SET run = 1`,
		`INSERT OR FAIL INTO replays (at) VALUES ($1)`:                                                                     `INSERT INTO replays (at) VALUES ($1)`,
		`SELECT max(changed_at), max(j.changed_at, $2), min(a, b, c) FROM jobs AS j`:                                       `SELECT max(changed_at), greatest(j.changed_at, $2), least(a, b, c) FROM jobs AS j`,
		`SELECT instr(filter, 'x') FROM t WHERE a LIKE $1 ESCAPE '\'`:                                                      `SELECT strpos(filter, 'x') FROM t WHERE a ILIKE $1 ESCAPE '\'`,
		`WHERE action GLOB guarded.value`:                                                                                  `WHERE action LIKE replace(guarded.value, '*', '%')`,
		`SELECT json_extract(p.policy, '$.max_attempts') FROM policies AS p`:                                               `SELECT CAST(CAST(p.policy AS jsonb) ->> 'max_attempts' AS BIGINT) FROM policies AS p`,
		`INSERT INTO t VALUES (?, '?', ?), (?, 'it''s ?', ?)`:                                                              `INSERT INTO t VALUES ($1, '?', $2), ($3, 'it''s ?', $4)`,
		`FROM jobs AS j WHERE j.letter = 'stored' AND j.letter <> '' AND a = 1`:                                            `FROM jobs AS j WHERE j.letter = 'stored' AND a = 1`,
		`WHERE j.list_state = 'retryable' AND j.list_state <> '' AND j.list_state IN ('discarded', 'retryable') AND a = 1`: `WHERE j.list_state = 'retryable' AND a = 1`,
		`FROM jobs AS j CROSS JOIN bodies AS b ON b.job_seq = j.seq WHERE a = 1 ORDER BY j.changed_at DESC, j.seq DESC LIMIT $1 + 0`: `FROM (SELECT j.* FROM jobs AS j WHERE a = 1 ORDER BY j.changed_at DESC, j.seq DESC LIMIT $1 + 0) AS j ` +
			`JOIN bodies AS b ON b.job_seq = j.seq ORDER BY j.changed_at DESC, j.seq DESC`,
		`WHERE run_at < $1 AND list_state IN ('scheduled', 'retryable') AND list_state = 'retryable'`:                                               `WHERE run_at < $1 AND list_state = 'retryable'`,
		`DELETE FROM t WHERE id IN (SELECT id FROM t WHERE a < $1 ORDER BY a LIMIT $2 + 0)`:                                                         `DELETE FROM t WHERE id = ANY (ARRAY(SELECT id FROM t WHERE a < $1 ORDER BY a LIMIT $2 + 0))`,
		`DELETE FROM t WHERE id NOT IN (SELECT id FROM t ORDER BY a LIMIT $1 + 0)`:                                                                  `DELETE FROM t WHERE id <> ALL (ARRAY(SELECT id FROM t ORDER BY a LIMIT $1 + 0))`,
		`FROM q CROSS JOIN jobs AS j JOIN b ON b.seq = j.seq WHERE j.seq IN (SELECT j.seq FROM jobs AS j WHERE a IN (1) LIMIT 2) ORDER BY j.run_at`: `FROM q CROSS JOIN LATERAL (SELECT j.* FROM jobs AS j WHERE a IN (1) LIMIT 2) AS j JOIN b ON b.seq = j.seq ORDER BY j.run_at`,
	} {
		if got := translate(query); got != want {
			t.Errorf("%s\nis written as\n%s\nwant\n%s", query, got, want)
		}
	}
}
