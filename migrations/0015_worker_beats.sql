-- How often a worker renews its lease. A worker whose session lock is gone is dead only when it has also missed several
-- of these: a lock goes with its connection, and a connection can end while the process lives.
alter table workers add column beat_ms integer not null default 1000;
