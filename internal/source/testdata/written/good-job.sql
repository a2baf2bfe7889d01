CREATE TABLE good_jobs (
  id uuid PRIMARY KEY DEFAULT gen_random_uuid(), queue_name text, priority integer, serialized_params jsonb, scheduled_at timestamp(6), performed_at timestamp(6),
  finished_at timestamp(6), error text, created_at timestamp(6) NOT NULL, updated_at timestamp(6) NOT NULL, active_job_id uuid, concurrency_key text,
  cron_key text, cron_at timestamp(6), batch_id uuid, executions_count integer, job_class text, error_event smallint, labels text[],
  locked_by_id uuid, locked_at timestamp(6)
);
CREATE INDEX index_good_jobs_on_discarded ON good_jobs (finished_at) WHERE finished_at IS NOT NULL AND error IS NOT NULL;
CREATE TABLE good_job_executions (
  id uuid PRIMARY KEY DEFAULT gen_random_uuid(), created_at timestamp(6) NOT NULL, active_job_id uuid NOT NULL, error text, error_backtrace text[], finished_at timestamp(6)
);
CREATE INDEX index_good_job_executions_on_active_job_id_and_created_at ON good_job_executions (active_job_id, created_at);
INSERT INTO good_jobs (id, queue_name, priority, serialized_params, scheduled_at, performed_at, finished_at, error, created_at, updated_at, active_job_id,
    executions_count, job_class, error_event) VALUES
  ('11111111-0000-4000-8000-000000000001', 'mail', 0, '{"job_class": "MailJob", "job_id": "11111111-0000-4000-8000-000000000001", "arguments": [{"_aj_globalid": "gid://shop/User/1"}, 9007199254740993], "executions": 5, "exception_executions": {"[StandardError]": 5}}',
    '2026-11-22 10:00:00', '2026-11-22 10:00:01', '2026-11-22 10:00:02.123456', 'Net::ReadTimeout: Net::ReadTimeout with #<TCPSocket:(closed)>', '2026-11-22 09:00:00', '2026-11-22 10:00:02',
    '11111111-0000-4000-8000-000000000001', 5, 'MailJob', 5),
  ('11111111-0000-4000-8000-000000000002', 'mail', 0, '{"job_class": "ShopJob", "arguments": [], "executions": 1, "exception_executions": {}}',
    '2026-11-22 10:01:00', '2026-11-22 10:01:01', '2026-11-22 10:01:02', 'RuntimeError: no route', '2026-11-22 09:00:00', '2026-11-22 10:01:02',
    '11111111-0000-4000-8000-000000000002', 1, 'ShopJob', 5),
  ('11111111-0000-4000-8000-000000000003', 'mail', 0, '{}', '2026-11-22 10:01:00', '2026-11-22 10:01:01', '2026-11-22 10:01:02', NULL, '2026-11-22 09:00:00', '2026-11-22 10:01:02',
    '11111111-0000-4000-8000-000000000003', 1, 'ShopJob', NULL);
INSERT INTO good_job_executions (created_at, active_job_id, error, error_backtrace) VALUES
  ('2026-11-22 10:00:01', '11111111-0000-4000-8000-000000000001', 'Net::ReadTimeout: Net::ReadTimeout with #<TCPSocket:(closed)>', ARRAY['/srv/app/app/jobs/mail_job.rb:7:in `perform''', '/gems/activejob/lib/active_job/execution.rb:52']);
