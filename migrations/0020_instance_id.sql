-- The name under which the instance admin acts.
alter table instance add column id uuid not null default gen_random_uuid();
