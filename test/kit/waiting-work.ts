// The waiting work of an instance: thousands of runs and flow runs that wait for a distant event, and thousands of idle
// projects. None of these rows is due, so no background service may read them.
import type { Pool } from '../../src/db/pool.ts'
import type { LargeTables } from './large-database.ts'
import { fill } from './large-tables.ts'

/** Tables that grow with the waiting work, and with the number of tenants. */
export const TENANT_TABLES = ['projects', 'agents', 'schedules', 'systems'] as const

/**
 * 5,000 runs are parked: a third waits for sub-runs, a third for people (half of them because a model was unavailable), a
 * third until an instant in the far future.
 * 2,000 flow runs are parked until their timeout, hours before an alert would call them slow.
 * 2,000 projects have an agent each that is due tomorrow, and a system variant of their own.
 */
export async function fillWaiting(pool: Pool, { projects, agents }: LargeTables): Promise<void> {
  await fill(pool, async (client) => {
    for (const sql of FILL) await client.query(sql, sql.includes('$1') ? [projects, agents] : [])
  })
}

const FILL: readonly string[] = [
  `insert into projects (id, name) select gen_random_uuid(), 'Idle ' || i from generate_series(1, 2000) i`,
  `insert into agents (id, project_id, name, prompt, capabilities, trigger_type, cron_schedule)
   select gen_random_uuid(), id, 'Idle agent', 'Rest.', '{}', 'schedule', '0 0 * * *' from projects where name like 'Idle %'`,
  `insert into schedules (agent_id, project_id, cron_schedule, timezone, catch_up, next_run_at)
   select id, project_id, cron_schedule, 'UTC', 'skip', muster.now() + interval '1 day' from agents where name = 'Idle agent'`,
  `insert into systems (project_id, variant, config, traffic)
   select id, 'own', '{}', 1 from projects where name like 'Idle %'`,
  `insert into agent_runs (id, project_id, agent_id, status, trigger, input, pause_reason, waits_for, open_children,
     created_at, started_at, last_seq, fence, ready_at, wake_at)
   select gen_random_uuid(), ($1::uuid[])[1 + i % cardinality($1::uuid[])], ($2::uuid[])[1 + i % cardinality($1::uuid[])],
     case when i % 3 = 1 then 'paused' else 'running' end, '{"type":"manual"}', '"hello"',
     case when i % 6 = 1 then 'human' when i % 6 = 4 then 'unavailable' end, (array['children', 'human', 'backoff'])[1 + i % 3],
     case when i % 3 = 0 then 1 else 0 end, muster.now() - interval '1 hour', muster.now() - interval '1 hour', 2, 1, null,
     case when i % 3 = 2 or i % 6 = 0 then muster.now() + interval '20 days' end
   from generate_series(1, 5000) i`,
  `insert into flow_runs (id, project_id, root, input, status, progress, timeout, expected, created_at, started_at, last_seq,
     fence, ready_at, wake_at, check_at)
   select gen_random_uuid(), ($1::uuid[])[1 + i % cardinality($1::uuid[])], '{"type":"task","id":"t","function":"f"}',
     'null', 'running', '{}', 864000000, 100000000, muster.now() - interval '1 hour', muster.now() - interval '1 hour', 1, 1,
     null, muster.now() + interval '9 days', muster.now() + interval '6 minutes'
   from generate_series(1, 2000) i where cardinality($2::uuid[]) > 0`,
]
