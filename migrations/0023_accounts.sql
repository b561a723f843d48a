-- A link by which an account gets a new password, made by the instance admin. One for each account: the newest.
create table auth.reset_links (
  user_id uuid primary key references auth.users on delete cascade,
  token_hash bytea not null unique,
  created_at timestamptz not null default muster.now(),
  expires_at timestamptz not null
);
create index reset_links_expiry on auth.reset_links (expires_at);

-- Addresses from which somebody has signed in. Their tries are counted apart from those of strangers.
create table auth.known_addresses (
  user_id uuid not null references auth.users on delete cascade,
  client text not null,
  last_used_at timestamptz not null default muster.now(),
  primary key (user_id, client)
);
create index known_addresses_last_used on auth.known_addresses (last_used_at);
