// The time from before a task is made in another process until its agent, in this process, makes its first model call,
// beside 500 idle agents; against a bare row that the other process commits with a NOTIFY and that is claimed here.
import pg from 'pg'
import { startOrg } from '../../src/bin/org-services.ts'
import { silentLog } from '../../src/kernel/log.ts'
import { createOpening } from '../../src/org/opening.ts'
import { type Side, startSide } from '../kit/side.ts'
import { atMostLatency, type Verdict } from '../kit/verdict.ts'
import { startBenchWorker } from '../runs/bench-worker.ts'
import { type Measuring, type Pairs, samplePairs } from '../runs/first-step.ts'
import { createDecidingModel } from './deciding-model.ts'
import type { GiverQuestion } from './giver.ts'

const IDLE_AGENTS = 500
const WARM_UP = 50
const SAMPLES = 200
const ROUNDS = 3
const P50_REQUIRED = 5

export async function benchArrival(url: string): Promise<Verdict> {
  await using giver = startSide('bench/org/giver.ts', [url])
  await using ours = await measureTasks(url, giver)
  await using bare = await measureRows(url, giver)
  await samplePairs(ours.measure, bare.measure, WARM_UP)
  const rounds: Pairs[] = []
  for (let round = 0; round < ROUNDS; round++) rounds.push(await samplePairs(ours.measure, bare.measure, SAMPLES))
  return atMostLatency(`task arrival to model call, ${IDLE_AGENTS} idle agents, p50`, rounds, 0.5, P50_REQUIRED)
}

async function measureTasks(url: string, giver: Side): Promise<Measuring> {
  let called = Promise.withResolvers<number>()
  const model = createDecidingModel((prompt) => {
    const title = /Task: (\d+)/.exec(prompt)?.[1]
    if (title) called.resolve(sinceMs(title))
  }, null)
  const worker = await startBenchWorker(url, () => model, {
    opening: (parts) => createOpening({ ...parts, log: silentLog }),
  })
  const { pool, agent } = worker
  const org = startOrg({ role: 'all', pool, worker: worker.parts.worker, log: silentLog })
  await pool.query(
    `insert into agents (id, project_id, name, capabilities)
     select gen_random_uuid(), $1, 'idle ' || n, '{}' from generate_series(1, ${IDLE_AGENTS}) n`,
    [agent.project_id],
  )
  await pool.query(
    'insert into task_queues (agent_id, project_id) select id, project_id from agents on conflict do nothing',
  )
  return {
    measure: async () => {
      called = Promise.withResolvers<number>()
      const question: GiverQuestion = { do: 'task', projectId: agent.project_id, agentId: agent.id }
      const taskId = await giver.ask<string>(question)
      const tookMs = await called.promise
      await untilDone(pool, taskId)
      return tookMs
    },
    [Symbol.asyncDispose]: async () => {
      await org.stop()
      await worker.stop()
    },
  }
}

async function untilDone(pool: Pick<pg.Pool, 'query'>, taskId: string): Promise<void> {
  for (;;) {
    const { rows } = await pool.query<{ status: string }>('select status from tasks where id = $1', [taskId])
    if (rows[0]?.status === 'completed') return
    await new Promise((resolve) => setTimeout(resolve, 2))
  }
}

async function measureRows(url: string, giver: Side): Promise<Measuring> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  await client.query(
    `create table public.bare_tasks
       (id bigint generated always as identity primary key, sent_at text not null, taken boolean not null default false)`,
  )
  await client.query('listen bench_task')
  let heard = Promise.withResolvers<number>()
  const claim = {
    name: 'claim',
    text: `update public.bare_tasks set taken = true where id in (
        select id from public.bare_tasks where not taken order by id limit 1 for update skip locked) returning sent_at`,
  }
  client.on('notification', () => {
    client.query<{ sent_at: string }>(claim).then(
      ({ rows }) => heard.resolve(sinceMs(rows[0]?.sent_at ?? '')),
      (error: unknown) => heard.reject(error),
    )
  })
  const question: GiverQuestion = { do: 'row' }
  return {
    measure: async () => {
      heard = Promise.withResolvers<number>()
      const [tookMs] = await Promise.all([heard.promise, giver.ask(question)])
      return tookMs
    },
    [Symbol.asyncDispose]: () => client.end(),
  }
}

const sinceMs = (instant: string): number => Number(process.hrtime.bigint() - BigInt(instant)) / 1e6
