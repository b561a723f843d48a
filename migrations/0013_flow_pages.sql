-- Five of six changes of a flow run's row touch no index and may stay on their page, where there is room: with 30 %
-- left, every seventh found none.
alter table flow_runs set (fillfactor = 40);

-- Whoever owns one works on it: among those that run, of which there are few, they are found as well.
drop index flow_runs_owned;

-- PostgreSQL reads a check anew for every statement: this one took a thirtieth of each append. Statuses are ours alone,
-- and typed where they are written.
alter table flow_runs drop constraint flow_runs_status_check;
