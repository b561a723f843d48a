// One run of 10,000 steps: a step at the end must cost as much as a step at the start, in our code and in bytes,
// however long the history is. The model answers at once and serialises nothing, so all measured time is spent in our
// code.
import type { LanguageModelV4, LanguageModelV4StreamPart } from '@ai-sdk/provider'
import { startBenchServer } from './kit/database.ts'
import { atMost, printVerdicts } from './kit/verdict.ts'
import { startBenchWorker } from './runs/bench-worker.ts'
import { argumentsOf, TOOL } from './runs/instant-model.ts'

const STEPS = 10_000
const BLOCK = 500
const REQUIRED = 1.5

export async function benchLongRun(): Promise<boolean> {
  await using server = await startBenchServer()
  const url = await server.createDatabase('long_run')
  const cpuMs: number[] = []
  let before = process.cpuUsage()
  const model = countingModel((step) => {
    if (step % BLOCK !== 0) return
    const { user, system } = process.cpuUsage(before)
    cpuMs.push((user + system) / 1_000 / BLOCK)
    before = process.cpuUsage()
  })
  const worker = await startBenchWorker(url, () => model)
  const runId = await worker.start()
  await worker.finished(runId)
  const { rows } = await worker.pool.query<{ block: number; bytes: number }>(
    `select ((data->>'step')::int - 1) / $2 as block, sum(octet_length(data::text))::float8 / $2 as bytes
     from run_events where run_id = $1 and data ? 'step' group by 1 order by 1`,
    [runId, BLOCK],
  )
  await worker.stop()
  const bytes = rows.map((row) => row.bytes)
  // The first block warms up; the last block ends with the run.
  const [startCpu, endCpu] = [median(cpuMs.slice(1, 5)), median(cpuMs.slice(-5, -1))]
  const [startBytes, endBytes] = [median(bytes.slice(1, 5)), median(bytes.slice(-5, -1))]
  const verdicts = [
    {
      what: 'CPU per step, end against start',
      ours: `${(endCpu * 1_000).toFixed(0)} µs`,
      peer: `${(startCpu * 1_000).toFixed(0)} µs`,
      ...atMost(endCpu / startCpu, REQUIRED),
    },
    {
      what: 'bytes per step, end against start',
      ours: endBytes.toFixed(0),
      peer: startBytes.toFixed(0),
      ...atMost(endBytes / startBytes, REQUIRED),
    },
  ]
  printVerdicts(verdicts)
  return verdicts.every((verdict) => verdict.isKept)
}

/**
 * The model counts its steps itself: reading the prompt would cost more with every step and distort the measurement.
 */
function countingModel(onStep: (step: number) => void): LanguageModelV4 {
  let step = 0
  return {
    specificationVersion: 'v4',
    provider: 'bench',
    modelId: 'counting',
    supportedUrls: {},
    doStream: async () => {
      step++
      onStep(step)
      return { stream: ReadableStream.from(partsOf(step)) }
    },
    doGenerate: async () => {
      throw new Error('this model only streams')
    },
  }
}

function partsOf(step: number): LanguageModelV4StreamPart[] {
  const isLast = step === STEPS
  const unified = isLast ? 'stop' : 'tool-calls'
  const input = JSON.stringify(argumentsOf(step))
  return [
    { type: 'text-delta', id: 'text', delta: 'Looking it up.' },
    ...(isLast ? [] : [{ type: 'tool-call' as const, toolCallId: `call_${step}`, toolName: TOOL.name, input }]),
    {
      type: 'finish',
      finishReason: { unified, raw: unified },
      usage: {
        inputTokens: { total: 400, noCache: 400, cacheRead: 0, cacheWrite: 0 },
        outputTokens: { total: 40, text: 40, reasoning: 0 },
      },
    },
  ]
}

function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN
}
