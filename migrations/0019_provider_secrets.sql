-- What of a provider's options is secret is sealed beside them; the next start moves what stands there in clear.
alter table providers add column header_names text[] not null default '{}';
alter table providers add column sealed_headers bytea;
alter table providers add column sealed_access_token bytea;
