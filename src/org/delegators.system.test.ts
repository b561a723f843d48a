import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestDatabase } from '../../test/kit/database.ts'
import { measureStatements } from '../../test/kit/query-plans.ts'
import { insertProject } from '../../test/kit/runs.ts'
import { newId } from '../kernel/id.ts'
import { silentLog } from '../kernel/log.ts'
import { tellDelegators } from './delegators.ts'

const { pool } = await createTestDatabase()

test('delegators are found by index among many agents and messages; other metadata names no delegator', async () => {
  const project = await insertProject(pool)
  const [delegator, agent, task] = [newId(), newId(), newId()]
  await pool.query(
    `insert into agents (id, project_id, name, capabilities)
     select id, $1, id::text, '{}' from (select unnest($2::uuid[]) as id union all
       select gen_random_uuid() from generate_series(1, 5000)) g`,
    [project, [delegator, agent]],
  )
  await pool.query(
    `insert into tasks (id, project_id, kind, title, created_by, assigned_to, metadata)
     select case when place = 1 then $2 else gen_random_uuid() end, $1, 'work', 'x', '{}', $3,
       jsonb_build_object('delegated_by', by) from unnest($4::text[]) with ordinality as g (by, place)`,
    [project, task, agent, [delegator, 'nobody', agent, newId()]],
  )
  await pool.query(
    `insert into agent_messages (id, project_id, from_agent, to_agent, kind, body, task_id)
     select gen_random_uuid(), $1, $2, $3, 'delegation', 'x', gen_random_uuid() from generate_series(1, 20000)`,
    [project, agent, delegator],
  )
  await pool.query('analyze')
  const { measured, stop } = measureStatements(pool, { large: ['agents', 'agent_messages'] })
  await tellDelegators(pool, silentLog, [agent], 'was stopped')
  await tellDelegators(pool, silentLog, [agent], 'was disabled')
  stop()
  assert.deepEqual(
    measured.flatMap(({ sequentialScans }) => sequentialScans),
    [],
  )
  for (const { text, buffers } of measured) assert.ok(buffers < 100, `${buffers} buffers: ${text}`)
  const { rows } = await pool.query('select to_agent, body from agent_messages where task_id = $1 order by body', [
    task,
  ])
  assert.deepEqual(rows, [
    { to_agent: delegator, body: `${agent} was disabled: the task "x" waits.` },
    { to_agent: delegator, body: `${agent} was stopped: the task "x" waits.` },
  ])
})
