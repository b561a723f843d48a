-- Of a tree of runs that is too large to go at once: the runs whose parent, base or flow run is gone already. The indexes
-- by which retention finds what has ended are made beside reads and writes, in a migration of their own.
create table run_removals (run_id uuid primary key);
