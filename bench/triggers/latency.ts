// (a) The time from before an object is written in another process until the reacting run makes its first model call in
// this process, at a hundred events a second and with two hundred reacting agents; against a row and its NOTIFY that
// one statement commits there and that is selected here, at the same rate between the events.
import pg from 'pg'
import { startSide } from '../kit/side.ts'
import { atMostLatency, type Verdict } from '../kit/verdict.ts'
import { type BenchWorker, startBenchWorker } from '../runs/bench-worker.ts'
import { createInstantModel } from '../runs/instant-model.ts'
import type { ChangerQuestion } from './changer.ts'
import { createReactors } from './reactors.ts'

const AGENTS = 200
const EVENTS = 1_000
const WARM_UP = 300
const EVERY_MS = 10
const ROUNDS = 3
const P50_REQUIRED = 6
const P99_REQUIRED = 12

export async function benchLatency(url: string): Promise<Verdict[]> {
  const heard = { ours: [] as number[], bare: [] as number[] }
  const worker = await startWorker(url, (tookMs) => heard.ours.push(tookMs))
  const listener = await listen(url, (tookMs) => heard.bare.push(tookMs))
  const { project_id: projectId } = worker.agent
  await createReactors(worker.pool, projectId, AGENTS, (index) => `Type ${index}`)
  await using changer = startSide('bench/triggers/changer.ts', [url])
  const rounds: { ours: number[]; bare: number[] }[] = []
  for (let round = 0; round <= ROUNDS; round++) {
    const count = round === 0 ? WARM_UP : EVENTS
    Object.assign(heard, { ours: [], bare: [] })
    const question: ChangerQuestion = { do: 'events', projectId, count, everyMs: EVERY_MS, types: AGENTS }
    await changer.ask(question)
    await until(() => heard.ours.length >= count && heard.bare.length >= count)
    if (round > 0) rounds.push({ ...heard })
  }
  await worker.stop()
  await listener.end()
  return [
    atMostLatency('event to run start, p50', rounds, 0.5, P50_REQUIRED),
    atMostLatency('event to run start, p99', rounds, 0.99, P99_REQUIRED),
  ]
}

async function startWorker(url: string, onStart: (tookMs: number) => void): Promise<BenchWorker> {
  const instant = createInstantModel({ steps: 1, parts: 1 })
  const model: typeof instant = {
    ...instant,
    doStream: (options) => {
      const input = options.prompt.find((message) => message.role === 'user')?.content[0]
      const sentAt = /"sent_at":"(\d+)"/.exec(input?.type === 'text' ? input.text : '')?.[1]
      if (sentAt) onStart(sinceMs(sentAt))
      return instant.doStream(options)
    },
  }
  return startBenchWorker(url, () => model)
}

async function listen(url: string, onSignal: (tookMs: number) => void): Promise<{ end(): Promise<void> }> {
  const pool = new pg.Pool({ connectionString: url, max: 5 })
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  await client.query(
    'create table public.signals (id bigint generated always as identity primary key, sent_at text not null)',
  )
  await client.query('listen bench_signal')
  client.on('notification', ({ payload }) => {
    const select = { name: 'heard', text: 'select sent_at from public.signals where id = $1', values: [payload] }
    void pool.query<{ sent_at: string }>(select).then(({ rows }) => onSignal(sinceMs(rows[0]?.sent_at ?? '0')))
  })
  return {
    end: async () => {
      await client.end()
      await pool.end()
    },
  }
}

async function until(isTrue: () => boolean): Promise<void> {
  for (const began = performance.now(); !isTrue(); ) {
    if (performance.now() - began > 30_000) throw new Error('some events set nothing off')
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}

const sinceMs = (instant: string): number => Number(process.hrtime.bigint() - BigInt(instant)) / 1e6
