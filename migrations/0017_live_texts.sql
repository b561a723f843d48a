-- The text of steps under way, in pieces: whoever says more writes what is new, and whoever watches reads what is new.
-- The whole text of each step was written and read again several times a second before.
drop table run_live_text;

-- One row for each step under way that has said something and is shown to other processes. Lost at a crash, as the
-- steps are. A text that begins anew has another version.
create unlogged table live_texts (
  run_id uuid primary key,
  version bigint not null,
  step integer not null,
  length integer not null,
  ancestors uuid[] not null
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.05);

-- `start` and `length` count as JavaScript does, in UTF-16 units.
create unlogged table live_text_pieces (
  run_id uuid not null,
  version bigint not null,
  start integer not null,
  text text not null,
  primary key (run_id, version, start)
) with (autovacuum_vacuum_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.05);

-- Texts of runs that are deleted go with them.
create or replace function muster.delete_events_of_runs() returns trigger language plpgsql as $$
begin
  delete from run_events e using gone where e.run_id = gone.id;
  delete from live_texts t using gone where t.run_id = gone.id;
  delete from live_text_pieces p using gone where p.run_id = gone.id;
  return null;
end $$;
