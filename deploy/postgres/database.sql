-- Makes the role and the database of Redrive. The password comes from the environment of psql.
\set ON_ERROR_STOP on
\getenv password REDRIVE_PASSWORD

CREATE ROLE redrive LOGIN PASSWORD :'password';
CREATE DATABASE redrive OWNER redrive ENCODING 'UTF8' TEMPLATE template0;

-- Lets pages name what keeps the server from cleaning up in the sessions of other roles.
GRANT pg_read_all_stats TO redrive;
