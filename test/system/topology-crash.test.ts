// A server is killed in the middle of a switch: the flow goes on under the old topology or the new one, never under a
// mixture, and no task is lost or done again.
import assert from 'node:assert/strict'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { FlowTopology } from '../../src/flows/history/topology.ts'
import type { FlowRun } from '../../src/kernel/flow-run.ts'
import { atEnd } from '../kit/at-end.ts'
import { createUnusedDatabase } from '../kit/database.ts'
import { type Muster, makeFolder, repository, startMuster } from '../kit/process.ts'
import { untilKilled } from '../kit/run-harness.ts'
import { withClient } from '../kit/test-server.ts'
import { inTier } from '../kit/tiers.ts'
import { until } from '../kit/until.ts'

const wholeFile = { after: atEnd }
const TASKS = 200
const WORKERS = 4
const newest = 'select id from flow_runs order by created_at desc limit 1'

for (const [why, isAsked] of [
  ['because of an overload', false],
  ['because somebody asked', true],
] as const) {
  inTier(!isAsked)(
    `killed at topology.mid_switch ${why}: every task is done once, under one topology after the other`,
    async () => {
      const databaseUrl = await createUnusedDatabase()
      const file = join(await makeFolder(wholeFile), 'calls')
      await writeFile(file, '')
      const life = (faults?: string): Promise<Muster> =>
        startMuster(wholeFile, {
          databaseUrl,
          env: {
            MUSTER_APP: join(repository, 'test/fixtures/counting-app.ts'),
            MUSTER_ADMIN_TOKEN: 'one-token-for-all-servers',
            MUSTER_SECRET_KEY: 'one-key-for-all-servers',
            MUSTER_DEMO: 'off',
            ...(faults ? { MUSTER_FAULTS: faults } : {}),
          },
        })
      const first = await life('topology.mid_switch=kill')
      const project = (await first.call<{ id: string }>('POST /api/projects', { body: { name: 'switching' } })).body.id
      const tasks = Array.from({ length: TASKS }, (_, place) => ({
        type: 'task',
        function: 'note',
        args: { file, place },
      }))
      const root = { type: 'adaptive', topology: 'hierarchical', workers: WORKERS, tasks, switch: !isAsked }
      const path = `/api/projects/${project}/flow-runs`
      // The server that accepts the flow works on it at once, and may be dead before it answers.
      const begun = await first.call<FlowRun>(`POST ${path}`, { body: { root } }).catch(() => null)
      if (isAsked) assert.equal(begun?.status, 202, begun?.text)
      const [made] = await withClient(databaseUrl, async (db) => (await db.query<{ id: string }>(newest)).rows)
      const id = made?.id ?? assert.fail('there is no flow run')
      const run = `${path}/${id}`
      if (isAsked) {
        await until(
          async () => (await first.call<FlowRun>(`GET ${run}`)).body.progress.completed >= 20,
          'some are done',
        )
        // The server dies before it answers.
        await first.call(`POST ${run}/topology`, { body: { topology: 'mesh' } }).catch(() => null)
      }
      await untilKilled(first)
      const query = <Row extends object>(sql: string): Promise<Row[]> =>
        withClient(databaseUrl, async (db) => (await db.query<Row>(sql, [id])).rows)
      const recorded = await query<{ place: number }>(
        `select (data->>'result')::int as place from flow_events where run_id = $1 and kind = 'task.completed'`,
      )
      assert.ok(isAsked ? recorded.length >= 20 : recorded.length === 0)
      assert.ok(recorded.length < TASKS)
      const before = await callsIn(file)

      const second = await life()
      const read = async (): Promise<FlowRun> => (await second.call<FlowRun>(`GET ${run}`)).body
      await until(async () => (await read()).completed_at !== null, 'the flow has ended', 60_000)
      const { status, output, progress } = await read()
      assert.deepEqual([status, progress.completed, progress.total], ['completed', TASKS, TASKS])
      assert.deepEqual(
        output,
        tasks.map(({ args }) => args.place),
      )
      const { rows, calls } = { rows: await query<{ task: string }>(completions), calls: await callsIn(file) }
      assert.equal(new Set(rows.map(({ task }) => task)).size, TASKS)
      assert.equal(rows.length, TASKS)
      // Only calls that were running at the kill were made again.
      const again = calls.slice(before.length)
      assert.deepEqual(
        again.filter((place) => recorded.some((done) => done.place === place)),
        [],
      )
      assert.ok(calls.length <= TASKS + WORKERS, `${calls.length} calls`)
      const { current, history } = (await second.call<FlowTopology>(`GET ${run}/topology`)).body
      assert.deepEqual([current, history.map(({ from, to }) => [from, to])], ['mesh', [['hierarchical', 'mesh']]])
      await second.stop()
    },
  )
}

const completions = `select data->>'task_id' as task from flow_events where run_id = $1 and kind = 'task.completed'`

const callsIn = async (file: string): Promise<number[]> =>
  (await readFile(file, 'utf8')).split('\n').filter(Boolean).map(Number)
