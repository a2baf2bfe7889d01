-- The rows that a new database has.
INSERT INTO revision (n, newest) VALUES (0, 0);
INSERT INTO audit_head (one, seq, hash) VALUES (1, 0, '');
INSERT INTO redaction (one, fingerprint, again) VALUES (1, '', 0);
INSERT INTO retention_notice (since) VALUES (0);
INSERT INTO retention_clock (trusted_at, hold) VALUES (0, 0);
INSERT INTO removal_notice (announced_at, last_at, last_seq) VALUES (0, 0, 0);
INSERT INTO search_state (one, mark, before, revision) VALUES (1, '', '', 0);
