-- An entry of an index that holds many rows of one key is marked dead only when all of them are. Rows that were queued
-- together have one key, so every claim stepped over hundreds of rows that had been claimed before it.
alter index agent_runs_ready set (deduplicate_items = off);
alter index agent_runs_owned set (deduplicate_items = off);
alter index flow_runs_ready set (deduplicate_items = off);
alter index flow_runs_owned set (deduplicate_items = off);
alter index flow_handouts_waiting set (deduplicate_items = off);
alter index flow_handouts_owned set (deduplicate_items = off);
