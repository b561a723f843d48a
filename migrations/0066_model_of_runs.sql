-- The model of a run's last call, with its provider. The agent may have another one by now.
alter table agent_runs add column model jsonb;
