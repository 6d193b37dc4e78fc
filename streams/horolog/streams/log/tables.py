"""The tables of `ledger.db`: what a release must know to read the file of another one.

meta        which log it is: format, log_id, partitions, generation, copied (1: by `backup`),
            place (the file it was written in: in another one it is a copy), and the sum of each
            partition's snapshots
heads       where each partition ends; written with each batch, so a lost tail is noticed
batches     a row a batch; the columns beside `data` repeat what its events say
snapshots   the latest record under each key
compacted   the same for topics that others than the scheduler write; made when first used
"""

from typing import Final

FORMAT: Final = 1

META: Final = frozenset({"format", "log_id", "partitions", "generation", "copied"})
TABLES: Final = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE heads (
    partition INTEGER PRIMARY KEY,
    last_seq INTEGER NOT NULL,
    crc INTEGER NOT NULL
);
CREATE TABLE batches (
    partition INTEGER NOT NULL REFERENCES heads,
    last_seq INTEGER NOT NULL,
    first_seq INTEGER NOT NULL,
    writer_epoch INTEGER NOT NULL,
    at_us INTEGER NOT NULL,
    data BLOB NOT NULL,
    crc INTEGER NOT NULL,
    PRIMARY KEY (partition, last_seq)
) WITHOUT ROWID;
CREATE TABLE snapshots (
    partition INTEGER NOT NULL REFERENCES heads,
    key TEXT NOT NULL,
    data BLOB NOT NULL,
    crc INTEGER NOT NULL,
    PRIMARY KEY (partition, key)
) WITHOUT ROWID;
"""

COMPACTED: Final = """
CREATE TABLE IF NOT EXISTS compacted (
    topic TEXT NOT NULL,
    key TEXT NOT NULL,
    data BLOB NOT NULL,
    crc INTEGER NOT NULL,
    PRIMARY KEY (topic, key)
) WITHOUT ROWID
"""
