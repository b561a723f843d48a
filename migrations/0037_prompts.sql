-- The prompt library. A variant of a prompt has rows here from its first edit in a project on; until then the text that
-- came with Muster holds.
create table prompt_variants (
  id uuid primary key,
  project_id uuid not null references projects on delete cascade,
  prompt_id text collate "C" not null,
  variant_id text collate "C" not null,
  -- The newest version. The row is locked while the next one is written, so that the numbers have no gap and no double.
  version integer not null,
  -- Its newest version deleted it.
  is_deleted boolean not null
) with (fillfactor = 80);
create unique index prompt_variants_name on prompt_variants (project_id, prompt_id, variant_id);
create index prompt_variants_live on prompt_variants (project_id, prompt_id, variant_id) where not is_deleted;

-- Every text that a variant ever had.
create table prompt_versions (
  variant uuid not null references prompt_variants on delete cascade,
  version integer not null,
  -- Null where this version deleted the prompt.
  messages jsonb,
  -- A text that came with Muster.
  is_seeded boolean not null default false,
  rolled_back_to integer,
  actor_type text not null,
  actor_id text,
  created_at timestamptz not null default muster.now(),
  primary key (variant, version)
);
create trigger prompt_versions_append_only before update or truncate on prompt_versions
  for each statement execute function muster.refuse_change();
