CREATE TABLE solid_queue_jobs (id bigserial PRIMARY KEY, queue_name varchar(255) NOT NULL, class_name varchar(255) NOT NULL, arguments text, priority int NOT NULL DEFAULT 0,
  active_job_id varchar(255), scheduled_at timestamp(6) NULL, finished_at timestamp(6) NULL, concurrency_key varchar(255), created_at timestamp(6) NOT NULL, updated_at timestamp(6) NOT NULL);
CREATE TABLE solid_queue_failed_executions (id bigserial PRIMARY KEY, job_id bigint NOT NULL UNIQUE, error text, created_at timestamp(6) NOT NULL,
  FOREIGN KEY (job_id) REFERENCES solid_queue_jobs (id) ON DELETE CASCADE);
CREATE TABLE solid_queue_ready_executions (id bigserial PRIMARY KEY, job_id bigint NOT NULL UNIQUE, queue_name varchar(255) NOT NULL, priority int NOT NULL DEFAULT 0, created_at timestamp(6) NOT NULL,
  FOREIGN KEY (job_id) REFERENCES solid_queue_jobs (id) ON DELETE CASCADE);
CREATE TABLE solid_queue_scheduled_executions (id bigserial PRIMARY KEY, job_id bigint NOT NULL UNIQUE, queue_name varchar(255) NOT NULL, priority int NOT NULL DEFAULT 0,
  scheduled_at timestamp(6) NOT NULL, created_at timestamp(6) NOT NULL, FOREIGN KEY (job_id) REFERENCES solid_queue_jobs (id) ON DELETE CASCADE);
INSERT INTO solid_queue_jobs (id, queue_name, class_name, arguments, priority, active_job_id, concurrency_key, created_at, updated_at) VALUES
  (1, 'mail', 'MailJob', '{"job_class":"MailJob","job_id":"aj-1","arguments":[{"_aj_globalid":"gid://shop/User/1"},9007199254740993],"executions":2,"exception_executions":{"[StandardError]":2}}', 2, 'aj-1', NULL, '2026-11-22 09:00:00', '2026-11-22 09:00:00'),
  (2, 'mail', 'LimitedJob', '{"job_class":"LimitedJob","job_id":"aj-2","arguments":[],"executions":0,"exception_executions":{}}', 0, 'aj-2', 'LimitedJob/1', '2026-11-22 09:01:00', '2026-11-22 09:01:00'),
  (3, 'mail', 'MailJob', '{"arguments":[]}', 0, 'aj-3', NULL, '2026-11-22 09:02:00', '2026-11-22 09:02:00');
INSERT INTO solid_queue_failed_executions (id, job_id, error, created_at) VALUES
  (7, 1, '{"exception_class":"Net::ReadTimeout","message":"too slow","backtrace":["/srv/app/app/jobs/mail_job.rb:7","/gems/activejob/execution.rb:52"]}', '2026-11-22 10:00:00'),
  (8, 2, '{"exception_class":"RuntimeError","message":"no route","backtrace":null}', '2026-11-22 10:01:00');
INSERT INTO solid_queue_ready_executions (id, job_id, queue_name, priority, created_at) VALUES (4, 3, 'mail', 0, '2026-11-22 09:02:00');
SELECT setval('solid_queue_ready_executions_id_seq', 4);
