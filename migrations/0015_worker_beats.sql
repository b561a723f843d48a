-- When a worker renewed its lease last, and how often it does. A worker whose session lock is gone is dead only when it
-- has also missed several renewals: a lock goes with its connection, and a connection can end while the process lives.
alter table workers
  add column beat_ms integer not null default 1000,
  add column renewed_at timestamptz not null default muster.now();
