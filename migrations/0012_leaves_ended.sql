-- Leaves end in two tables, and are counted in one way.
create function muster.leaf_has_ended(flow_run uuid) returns void language plpgsql as $$
begin
  update flow_runs set
    ended_leaves = ended_leaves + 1,
    ready_at = case when owner is null and completed_at is null then muster.now() else ready_at end
  where id = flow_run;
  perform pg_notify('muster_flow', flow_run::text);
end $$;
create or replace function muster.count_ended_leaf() returns trigger language plpgsql as $$
begin
  perform muster.leaf_has_ended(new.flow_run_id);
  return null;
end $$;
create or replace function muster.count_ended_handout() returns trigger language plpgsql as $$
begin
  perform muster.leaf_has_ended(new.run_id);
  return null;
end $$;
