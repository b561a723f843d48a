// (d) The time from the start of a run in another process until this process, its owner, makes the first model call;
// against a bare signal between the same processes: one statement commits a row and its NOTIFY there, and the row is
// selected here. Both are measured from before the starter's first query until this process acts on it.
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { type Side, startSide } from '../kit/side.ts'
import { atMostLatency, type Verdict } from '../kit/verdict.ts'
import { startBenchWorker } from './bench-worker.ts'
import { createInstantModel } from './instant-model.ts'
import type { StarterQuestion } from './starter.ts'

export const SAMPLES = 300
export const WARM_UP = 100
export const ROUNDS = 3
/** A worker whose run has ended looks for the next run; that query must not disturb the next sample. */
const PAUSE_MS = 4
const P50_REQUIRED = 5
const P99_REQUIRED = 10

type Measure = () => Promise<number>

export async function benchFirstStep(url: string): Promise<Verdict[]> {
  await using starter = startSide('bench/runs/starter.ts', [url])
  await using ours = await measureRuns(url, starter)
  await using bare = await measureSignals(url, starter)
  await samplePairs(ours.measure, bare.measure, WARM_UP)
  const rounds: Pairs[] = []
  for (let round = 0; round < ROUNDS; round++) rounds.push(await samplePairs(ours.measure, bare.measure, SAMPLES))
  return [
    atMostLatency('first step after a start elsewhere, p50', rounds, 0.5, P50_REQUIRED),
    atMostLatency('first step after a start elsewhere, p99', rounds, 0.99, P99_REQUIRED),
  ]
}

export interface Pairs {
  ours: number[]
  bare: number[]
}

/** Takes one sample of each in turn, so that other work of the machine slows both alike. */
export async function samplePairs(ours: Measure, bare: Measure, count: number): Promise<Pairs> {
  const pairs: Pairs = { ours: [], bare: [] }
  for (let taken = 0; taken < count; taken++) {
    await sleep(PAUSE_MS)
    pairs.ours.push(await ours())
    await sleep(PAUSE_MS)
    pairs.bare.push(await bare())
  }
  return pairs
}

export interface Measuring extends AsyncDisposable {
  measure: Measure
}

/** The input of a run is the instant before its start; the next run is started after it has ended. */
export async function measureRuns(url: string, starter: Side): Promise<Measuring> {
  const instant = createInstantModel({ steps: 1, parts: 1 })
  let called = Promise.withResolvers<number>()
  const model: typeof instant = {
    ...instant,
    doStream: (options) => {
      const input = options.prompt.find((message) => message.role === 'user')?.content[0]
      called.resolve(sinceMs(input?.type === 'text' ? input.text : ''))
      return instant.doStream(options)
    },
  }
  const worker = await startBenchWorker(url, () => model)
  const question: StarterQuestion = { do: 'run', projectId: worker.agent.project_id, agentId: worker.agent.id }
  return {
    measure: async () => {
      called = Promise.withResolvers<number>()
      const runId = await starter.ask<string>(question)
      const tookMs = await called.promise
      await worker.finished(runId)
      return tookMs
    },
    [Symbol.asyncDispose]: () => worker.stop(),
  }
}

async function measureSignals(url: string, starter: Side): Promise<Measuring> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  await client.query(
    'create table public.signals (id bigint generated always as identity primary key, sent_at text not null)',
  )
  await client.query('listen bench_signal')
  let heard = Promise.withResolvers<number>()
  client.on('notification', ({ payload }) => {
    const select = { name: 'heard', text: 'select sent_at from public.signals where id = $1', values: [payload] }
    client.query<{ sent_at: string }>(select).then(
      ({ rows }) => heard.resolve(sinceMs(rows[0]?.sent_at ?? '')),
      (error: unknown) => heard.reject(error),
    )
  })
  const question: StarterQuestion = { do: 'signal' }
  return {
    measure: async () => {
      heard = Promise.withResolvers<number>()
      const [tookMs] = await Promise.all([heard.promise, starter.ask(question)])
      return tookMs
    },
    [Symbol.asyncDispose]: () => client.end(),
  }
}

const sinceMs = (instant: string): number => Number(process.hrtime.bigint() - BigInt(instant)) / 1e6
