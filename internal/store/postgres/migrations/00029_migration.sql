-- See the file of this name for SQLite.
CREATE TABLE migration (
    name   TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    source TEXT COLLATE "C" NOT NULL,
    mark   TEXT COLLATE "C" NOT NULL,
    copied BIGINT NOT NULL,
    mended BIGINT NOT NULL
);
