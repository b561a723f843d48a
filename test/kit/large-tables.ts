// An instance as it looks after years: a hundred thousand ended runs with all rows that belong to them, made in a few
// seconds by a handful of statements. This file does not import node:test, so that benches can use it.
import type pg from 'pg'
import type { Pool } from '../../src/db/pool.ts'
import { newId } from '../../src/kernel/id.ts'
import { withClient } from './test-server.ts'

/** The tables that grow with the age of an instance. No background service may read such a table from end to end. */
export const LARGE_TABLES = [
  'agent_runs',
  'run_events',
  'flow_runs',
  'flow_events',
  'flow_alerts',
  'flow_handouts',
  'flow_leaf_usage',
  'flow_answers',
  'tasks',
  'processing_log',
  'audit_log',
  'idempotency_keys',
  'hook_deliveries',
  'objects',
  'object_versions',
  'agent_messages',
  'evals',
  'eval_cases',
  'eval_results',
  'chats',
  'supervisor_checkpoints',
  'supervisor_channels',
  'supervisor_writes',
  'prompt_variants',
  'prompt_versions',
  'usage_days',
] as const

const PROJECTS = 3

/**
 * Every row is over a month old and everything has ended. Of a hundred runs 95 are completed, three failed, one was
 * cancelled and one paused at its step limit; every tenth is a sub-run, every twentieth a leaf of a flow run, every
 * hundredth resumes another run, every tenth belongs to a supervisor, with a chat and checkpoints. There are a tenth as
 * many flow runs, and half as many rows of every other kind.
 */
export async function fillLargeTables(url: string, runs = 100_000): Promise<void> {
  const projects = Array.from({ length: PROJECTS }, () => newId())
  const agents = projects.map(() => newId())
  await fillAt(url, async (client) => {
    for (const sql of FILL) {
      await client.query(sql.replaceAll('$runs', String(runs)), usesIds(sql) ? [projects, agents] : [])
    }
  })
}

/**
 * Makes the rows in one transaction, then vacuums and analyses the tables, as autovacuum does in real use. The
 * connection is its own, without the time limits of the pool, because a busy machine may take long.
 */
export function fill(pool: Pool, work: (client: pg.Client) => Promise<void>): Promise<void> {
  return fillAt(pool.options.connectionString ?? '', work)
}

async function fillAt(url: string, work: (client: pg.Client) => Promise<void>): Promise<void> {
  await withClient(url, async (client) => {
    await client.query('begin')
    // Triggers and foreign keys are off, because the rows are consistent by construction.
    await client.query('set local session_replication_role = replica')
    await work(client)
    await client.query('commit')
    await client.query('vacuum analyze')
  })
}

const usesIds = (sql: string): boolean => sql.includes('$1')

/**
 * An id made of a table's letter and a number. Ids are in the order of their numbers, as real ids are in that of time.
 */
const id = (letter: string, number: string): string =>
  `('0190${letter.repeat(4)}-0000-7000-8000-' || lpad(to_hex(${number}), 12, '0'))::uuid`

const RUN = (number: string): string => id('a', number)
const FLOW_RUN = (number: string): string => id('f', number)
const HOOK = id('d', '1')

/** Row `i` of any table belongs to the same project as row `i` of the others. */
const project = (number: string): string => `($1::uuid[])[1 + (${number}) % cardinality($1::uuid[])]`
const agent = (number: string): string => `($2::uuid[])[1 + (${number}) % cardinality($2::uuid[])]`
/** Instants spread over eleven days, whatever the number of rows. */
const at = (number: string): string => `now() - interval '60 days' + (${number}) * interval '1 s' * (1e6 / $runs)`

const isSupervisor = (number: string): string => `(${number}) % 10 = 7`
const THREAD = (number: string): string => `${RUN(number)}::text`

const FILL: readonly string[] = [
  `insert into projects (id, name) select id, 'Large ' || place from unnest($1::uuid[]) with ordinality as p (id, place)
   where cardinality($2::uuid[]) > 0`,
  `insert into agents (id, project_id, name, prompt, capabilities)
   select a.id, ($1::uuid[])[place], 'Large agent', 'Work.', '{}' from unnest($2::uuid[]) with ordinality as a (id, place)`,
  // A sub-run and its parent, and a continuation and its base, are of one project: their numbers differ by a multiple
  // of 3.
  `insert into agent_runs (id, project_id, agent_id, status, trigger, input, summary, pause_reason, step_count, created_at,
     started_at, completed_at, duration, parent_run_id, ancestors, depth, base_run_id, base_seq, resumed_from, flow_run_id,
     last_seq, fence, ready_at, entry_id, part)
   select ${RUN('i')}, ${project('i')}, case when not ${isSupervisor('i')} then ${agent('i')} end,
     case when i % 100 < 95 then 'completed' when i % 100 < 98 then 'failed' when i % 100 = 98 then 'cancelled'
       else 'paused' end,
     case when ${isSupervisor('i')} then '{"type":"supervisor","system_variant":"blue","node":"supervisor"}'::jsonb
       else '{"type":"manual"}' end, '"hello"', 'done', case when i % 100 = 99 then 'step_limit' end, 1,
     ${at('i')}, ${at('i')}, ${at('i')} + interval '1 s', 1000,
     case when i % 10 = 5 and i > 105 then ${RUN('i - 105')} end,
     case when i % 10 = 5 and i > 105 then array[${RUN('i - 105')}] else '{}' end,
     case when i % 10 = 5 and i > 105 then 1 else 0 end,
     case when i % 100 = 51 and i > 150 then ${RUN('i - 150')} end,
     case when i % 100 = 51 and i > 150 then 2 end,
     case when i % 100 = 51 and i > 150 then ${RUN('i - 150')} end,
     case when i % 20 = 2 then ${FLOW_RUN('i / 10')} end,
     2, 1, null, case when i % 2 = 0 then ${id('e', 'i / 2')} end,
     case when ${isSupervisor('i')} then jsonb_build_object('variant', 'blue', 'node', 'supervisor', 'config', '{}'::jsonb,
       'context', jsonb_build_object('context_id', 'chat-' || i, 'metadata', '{}'::jsonb)) end
   from generate_series(0, $runs - 1) i`,
  `insert into run_events (run_id, seq, id, kind, data, at)
   select ${RUN('i')}, e.seq, gen_random_uuid(), e.kind, e.data::jsonb, ${at('i')}
   from generate_series(0, $runs - 1) i,
     (values (1, 'run.started', '{"input":"hello"}'), (2, 'run.completed', '{"summary":"done"}')) e (seq, kind, data)`,
  `insert into chats (project_id, chat_id, run_id, updated_at) select ${project('i')}, 'chat-' || i, ${RUN('i')}, ${at('i')}
   from generate_series(0, $runs - 1) i where ${isSupervisor('i')} and cardinality($2::uuid[]) > 0`,
  `insert into supervisor_checkpoints (project_id, thread_id, checkpoint_ns, checkpoint_id, checkpoint, metadata, created_at)
   select ${project('i')}, ${THREAD('i')}, '', n::text, '{}', '{}', ${at('i')}
   from generate_series(0, $runs - 1) i, generate_series(1, 3) n where ${isSupervisor('i')} and cardinality($2::uuid[]) > 0`,
  `insert into supervisor_channels (project_id, thread_id, checkpoint_ns, channel, version, value)
   select ${project('i')}, ${THREAD('i')}, '', 'supervisor', n::text, '{}'
   from generate_series(0, $runs - 1) i, generate_series(1, 3) n where ${isSupervisor('i')} and cardinality($2::uuid[]) > 0`,
  `insert into supervisor_writes (project_id, thread_id, checkpoint_ns, checkpoint_id, task_id, place, channel, value)
   select ${project('i')}, ${THREAD('i')}, '', n::text, 'task', 0, 'supervisor', '{}'
   from generate_series(0, $runs - 1) i, generate_series(1, 3) n where ${isSupervisor('i')} and cardinality($2::uuid[]) > 0`,
  `insert into prompt_variants (id, project_id, prompt_id, variant_id, version, is_deleted)
   select ${id('7', 'i')}, ${project('i')}, 'prompt-' || i, 'blue', 5, false
   from generate_series(0, $runs / 20 - 1) i where cardinality($2::uuid[]) > 0`,
  `insert into prompt_versions (variant, version, messages, actor_type, created_at)
   select ${id('7', 'i')}, n, '[]', 'user', ${at('i')} from generate_series(0, $runs / 20 - 1) i, generate_series(1, 5) n`,
  `insert into agent_tokens (agent_id, used) select unnest($2::uuid[]), 1000 where cardinality($1::uuid[]) > 0`,
  `insert into flow_runs (id, project_id, root, input, status, progress, timeout, created_at, started_at, completed_at,
     duration, last_seq, fence, ready_at)
   select ${FLOW_RUN('i')}, ${project('i * 10 + 2')}, '{"type":"function","name":"f"}', 'null',
     case when i % 100 < 97 then 'completed' when i % 100 = 97 then 'failed' when i % 100 = 98 then 'cancelled'
       else 'timed_out' end, '{}', 600000, ${at('i * 10')}, ${at('i * 10')}, ${at('i * 10')} + interval '1 s', 1000, 3, 1, null
   from generate_series(0, $runs / 10 - 1) i where cardinality($2::uuid[]) > 0`,
  `insert into flow_events (run_id, seq, id, kind, data, at)
   select ${FLOW_RUN('i')}, e.seq, gen_random_uuid(), e.kind, '{}', ${at('i * 10')}
   from generate_series(0, $runs / 10 - 1) i,
     (values (1, 'flow.started'), (2, 'task.completed'), (3, 'flow.completed')) e (seq, kind)`,
  `insert into flow_handouts (run_id, task_id, attempt, project_id, function, call, created_at, fence, outcome)
   select ${FLOW_RUN('i')}, 'root', 1, ${project('i * 10 + 2')}, 'f', '{}', ${at('i * 10')}, 1, '{"output":1}'
   from generate_series(0, $runs / 10 - 1) i where cardinality($2::uuid[]) > 0`,
  `insert into flow_leaf_usage (flow_run_id, task_id, input_tokens, output_tokens, usage_estimated)
   select ${FLOW_RUN('i')}, 'root', 1000, 100, false from generate_series(0, $runs / 10 - 1) i`,
  `insert into flow_answers (flow_run_id, task_id, call, place, question, answer)
   select ${FLOW_RUN('i')}, 'root', '', place, 'hash', 'An answer' from generate_series(0, $runs / 10 - 1) i, generate_series(0, 4) place`,
  `insert into flow_alerts (id, project_id, flow_run_id, kind, progress, suspected_cause, actions, created_at, acked_at)
   select ${id('b', 'i')}, ${project('i * 10 + 2')}, ${FLOW_RUN('i')}, 'slow', '{}', 'load', '[]', ${at('i * 10')}, ${at('i * 10')}
   from generate_series(0, $runs / 10 - 1) i where cardinality($2::uuid[]) > 0`,
  `insert into tasks (id, project_id, kind, title, status, assigned_to, created_by, run_id, created_at, completed_at)
   select ${id('c', 'i')}, ${project('i')},
     case i % 3 when 0 then 'work' when 1 then 'suggestion' else 'escalation' end, 'A task',
     case when i % 100 < 96 then 'completed' when i % 100 < 98 then 'rejected' else 'cancelled' end,
     case when i % 3 = 0 then ${agent('i')} end, '{"type":"user","id":null}',
     case when i % 3 > 0 then ${RUN('i')} end, ${at('i')}, ${at('i')}
   from generate_series(0, $runs / 2 - 1) i`,
  `insert into agent_messages (id, project_id, from_agent, to_agent, kind, body, task_id, created_at)
   select gen_random_uuid(), ${project('i')}, ${agent('i')}, ${agent('i')},
     case when i % 2 = 0 then 'completion' else 'delegation' end, 'A message', ${id('c', 'i')}, ${at('i')}
   from generate_series(0, $runs / 2 - 1) i`,
  // A hundred runs make an eval of fifty cases.
  `insert into evals (id, project_id, name, variants, systems, status, total, done, is_open, created_at, completed_at)
   select ${id('8', 'i')}, ${project('i')}, 'An eval', '{blue,green}', '[]',
     case when i % 10 = 9 then 'cancelled' else 'completed' end, 100, 100, false, ${at('i * 100')}, ${at('i * 100')}
   from generate_series(0, $runs / 100 - 1) i where cardinality($2::uuid[]) > 0`,
  `insert into eval_cases (eval_id, place, task, metadata, expect)
   select ${id('8', 'i / 50')}, i % 50, 'A task', '{}', '{}' from generate_series(0, $runs / 2 - 1) i`,
  `insert into eval_results (eval_id, place, variant, run_id, ended_at, passed, status, route, output, latency, tokens)
   select ${id('8', 'i / 100')}, i / 2 % 50, i % 2, ${RUN('i')}, ${at('i')}, true, 'DONE', '[]', 'done', 1000, 100
   from generate_series(0, $runs - 1) i`,
  `insert into processing_log (id, project_id, agent_id, graph_object_id, object_version, event_type, delivery, depth, status,
     run_id, created_at, started_at, completed_at)
   select ${id('e', 'i')}, ${project('i * 2')}, ${agent('i * 2')}, ${id('9', 'i')}, 1, 'created', gen_random_uuid(), 1,
     case when i % 100 < 97 then 'completed' when i % 100 = 97 then 'failed' when i % 100 = 98 then 'abandoned'
       else 'skipped' end,
     case when i % 100 < 99 then ${RUN('i * 2')} end, ${at('i * 2')}, ${at('i * 2')}, ${at('i * 2')}
   from generate_series(0, $runs / 2 - 1) i`,
  `insert into objects (id, project_id, type, key, properties, actor_type, words, created_at, updated_at)
   select ${id('9', 'i')}, ${project('i * 2')}, 'note', 'key-' || i, '{}', 'user', '', ${at('i')}, ${at('i')}
   from generate_series(0, $runs / 2 - 1) i where cardinality($2::uuid[]) > 0`,
  `insert into object_versions (object_id, version, op, properties, actor_type, at)
   select ${id('9', 'i')}, 1, 'create', '{}', 'user', ${at('i')} from generate_series(0, $runs / 2 - 1) i`,
  `insert into audit_log (id, project_id, action, actor_type, actor_id, target_type, target_id, at)
   select gen_random_uuid(), ${project('i')}, 'task.create', 'user', ${agent('i')}::text, 'task', ${id('c', 'i')}::text, ${at('i')}
   from generate_series(0, $runs / 2 - 1) i`,
  `insert into idempotency_keys (scope, route, key, body_hash, status, sealed_answer, created_at)
   select 'key:' || ${project('i')}, 'POST /runs', 'key-' || i, '\\x00', 201, '\\x00', now()
   from generate_series(0, $runs / 2 - 1) i where cardinality($2::uuid[]) > 0`,
  `insert into hooks (id, project_id, agent_id, name, sealed_secret) select ${HOOK}, ($1::uuid[])[1], ($2::uuid[])[1], 'hook', '\\x00'`,
  `insert into hook_deliveries (hook_id, webhook_id, run_id, received_at)
   select ${HOOK}, 'delivery-' || i, ${RUN('i')}, now() from generate_series(0, $runs / 2 - 1) i`,
  `insert into usage_days (project_id, day, agent_id, source, input_tokens, output_tokens)
   select ${project('i')}, (${at('i')})::date, ${id('1', 'i')}, 'agent', 10, 1
   from generate_series(0, $runs / 2 - 1) i where cardinality($2::uuid[]) > 0`,
]
