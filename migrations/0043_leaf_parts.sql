-- The result of a part of a list says in its event which list, and which place in it: `part`. Events that were written
-- before this migration say so only by the id of their leaf, and nobody rewrites them: a journal is large.
create function muster.leaf_part(data jsonb) returns jsonb language sql immutable parallel safe as $$
  select coalesce(data->'part', (
    select jsonb_build_object('of', found[1], 'place', found[2]::int)
    from regexp_match(data->>'task_id', '^(.*/(?:map|reduce)) ([0-9]{1,9})$') as found where found is not null))
$$;
