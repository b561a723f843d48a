-- The answers to the items of muster.ask_each. A leaf that is called again, after a crash or as a retry, asks only about
-- the items without an answer. `call` tells the calls of one leaf apart, `place` is the item's place in the list of the
-- call, from 0, and `question` is a hash of the prompt: an answer counts for the question that was asked.
create table flow_answers (
  flow_run_id uuid not null references flow_runs on delete cascade,
  task_id text not null,
  call text not null,
  place int not null,
  question text not null,
  answer text not null
);
-- The id of a leaf may be longer than an index takes.
create unique index flow_answers_of_item on flow_answers (flow_run_id, md5(task_id), call, place);
