CREATE TYPE oban_job_state AS ENUM ('available', 'scheduled', 'executing', 'retryable', 'completed', 'discarded', 'cancelled');
CREATE TABLE oban_jobs (
  id bigserial PRIMARY KEY, state oban_job_state NOT NULL DEFAULT 'available', queue text NOT NULL DEFAULT 'default', worker text NOT NULL,
  args jsonb NOT NULL DEFAULT '{}', errors jsonb[] NOT NULL DEFAULT ARRAY[]::jsonb[], attempt integer NOT NULL DEFAULT 0,
  max_attempts integer NOT NULL DEFAULT 20, inserted_at timestamp NOT NULL DEFAULT timezone('UTC', now()),
  scheduled_at timestamp NOT NULL DEFAULT timezone('UTC', now()), attempted_at timestamp, completed_at timestamp, attempted_by text[],
  discarded_at timestamp, priority integer NOT NULL DEFAULT 0, tags text[] DEFAULT ARRAY[]::text[], meta jsonb DEFAULT '{}', cancelled_at timestamp
);
CREATE INDEX oban_jobs_state_discarded_at_index ON oban_jobs (state, discarded_at);
INSERT INTO oban_jobs (id, state, queue, worker, args, errors, attempt, max_attempts, inserted_at, scheduled_at, attempted_at, discarded_at) VALUES
  (1, 'discarded', 'mail', 'Shop.Mailer', '{"to": "ana", "big": 9007199254740993}', ARRAY[
    '{"at": "2026-11-22T10:00:00.000000Z", "attempt": 1, "error": "** (RuntimeError) no route\n    (shop 0.1.0) lib/shop/mailer.ex:9: Shop.Mailer.perform/1"}',
    '{"at": "2026-11-22T10:01:00.000000Z", "attempt": 2, "error": "** (Shop.Declined) card declined: 51\n    (shop 0.1.0) lib/shop/mailer.ex:12: Shop.Mailer.perform/1"}'
  ]::jsonb[], 2, 2, '2026-11-22 09:59:00', '2026-11-22 10:01:00', '2026-11-22 10:01:00', '2026-11-22 10:01:00.123456'),
  (2, 'discarded', 'mail', 'Shop.Mailer', '{}', ARRAY['{"at": "2026-11-22T10:02:00.000000Z", "attempt": 1, "error": "** (Oban.PerformError) failed with {:error, :nope}"}']::jsonb[],
    1, 1, '2026-11-22 09:59:30', '2026-11-22 10:02:00', '2026-11-22 10:02:00', '2026-11-22 10:02:00.5'),
  (3, 'available', 'mail', 'Shop.Mailer', '{}', '{}', 0, 20, '2026-11-22 09:59:30', '2026-11-22 10:02:00', NULL, NULL);
SELECT setval('oban_jobs_id_seq', 3);
