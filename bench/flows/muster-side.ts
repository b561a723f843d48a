// Our side: the worker of this process executes flows from start to end.

import type { BuiltInNode } from '../../src/flows/machine/built-in-patterns.ts'
import type { AppFunction } from '../../src/kernel/app.ts'
import { timeInFlight } from '../kit/rounds.ts'
import { answerQuestions } from '../kit/side.ts'
import { startFlowBenchWorker } from './flow-worker.ts'
import { FIRST, nextValue, STEPS, square, sumOfSquares, type Value } from './leaf-work.ts'

export type MusterQuestion =
  | { do: 'sequences'; count: number; inFlight: number }
  /** One flow with this many branches, which are functions or agents. */
  | { do: 'fan_out'; branches: number; leaf: 'function' | 'agent' }
  /** Runs outside of flows. */
  | { do: 'plain_runs'; count: number; inFlight: number }
  | { do: 'map_reduce'; items: number; workers: number }

export interface MusterAnswer {
  seconds: number
  flowRunIds: string[]
  /** The largest heap, if it was watched. */
  heapBytes: number
}

const [url = '', concurrency = ''] = process.argv.slice(2)

const functions: Record<string, AppFunction> = {
  next_value: (value: Value) => nextValue(value),
  square: (item: number) => square(item),
  numbers: async function* ({ count }: { count: number }) {
    for (let item = 0; item < count; item++) yield item
  },
  squares: ({ items }: { items: number[] }) => [items.map(square).reduce((all, each) => all + each, 0)],
  sum: ({ values }: { values: number[] }) => values.reduce((all, each) => all + each, 0),
}
const worker = await startFlowBenchWorker(url, { functions, concurrency: Number(concurrency) })
const { pool, agent } = worker.runs

answerQuestions<MusterQuestion>((question) => {
  switch (question.do) {
    case 'sequences':
      return playSequences(question)
    case 'fan_out':
      return question.leaf === 'agent' ? playAgents(question.branches) : playFanOut(question.branches)
    case 'plain_runs':
      return playRuns(question)
    case 'map_reduce':
      return playMapReduce(question)
  }
})

const SEQUENCE: BuiltInNode = {
  type: 'sequential',
  steps: Array.from({ length: STEPS }, () => ({ type: 'task', function: 'next_value' })),
}

async function playSequences({ count, inFlight }: Extract<MusterQuestion, { do: 'sequences' }>): Promise<MusterAnswer> {
  const flowRunIds: string[] = []
  const seconds = await timeInFlight(count, inFlight, async () => {
    const flowRunId = await worker.start(SEQUENCE, { input: FIRST })
    flowRunIds.push(flowRunId)
    await worker.finished(flowRunId)
  })
  for (const output of await readOutputs(flowRunIds)) {
    const { step } = output as Value // checked in the next line
    if (step !== STEPS) throw new Error(`a flow gave ${JSON.stringify(output)}`)
  }
  return { seconds, flowRunIds, heapBytes: 0 }
}

async function playFanOut(branches: number): Promise<MusterAnswer> {
  const root: BuiltInNode = {
    type: 'parallel',
    branches: Array.from({ length: branches }, (_, item) => ({ type: 'task', function: 'square', args: item })),
  }
  const { output, ...answer } = await playOne(root, { workers: branches })
  const sum = (output as number[]).reduce((all, each) => all + each, 0) // checked in the next line
  if (sum !== sumOfSquares(branches)) throw new Error(`the branches gave ${sum} together`)
  return answer
}

async function playAgents(branches: number): Promise<MusterAnswer> {
  const root: BuiltInNode = {
    type: 'parallel',
    branches: Array.from({ length: branches }, () => ({ type: 'task', agent: agent.name, input: 'Look it up.' })),
  }
  const { output, ...answer } = await playOne(root, { workers: branches })
  const texts = (output as string[]).filter((text) => text.startsWith('piece 0')) // a text or null, by the contract
  if (texts.length !== branches) throw new Error(`${texts.length} agents answered`)
  return answer
}

async function playRuns({ count, inFlight }: Extract<MusterQuestion, { do: 'plain_runs' }>): Promise<MusterAnswer> {
  const seconds = await timeInFlight(count, inFlight, async () => worker.runs.finished(await worker.runs.start()))
  return { seconds, flowRunIds: [], heapBytes: 0 }
}

async function playMapReduce({ items, workers }: Extract<MusterQuestion, { do: 'map_reduce' }>): Promise<MusterAnswer> {
  const source = { function: 'numbers', args: { count: items } }
  const root: BuiltInNode = { type: 'map_reduce', items: source, workers, map: 'squares', reduce: 'sum' }
  let heapBytes = 0
  const watching = setInterval(() => {
    heapBytes = Math.max(heapBytes, process.memoryUsage().heapUsed)
  }, 20)
  const { output, ...answer } = await playOne(root)
  clearInterval(watching)
  if (output !== sumOfSquares(items)) throw new Error(`the items gave ${JSON.stringify(output)} together`)
  return { ...answer, heapBytes }
}

async function playOne(root: BuiltInNode, options?: { workers: number }): Promise<MusterAnswer & { output: unknown }> {
  const began = performance.now()
  const flowRunId = await worker.start(root, options)
  await worker.finished(flowRunId)
  const seconds = (performance.now() - began) / 1_000
  const [output] = await readOutputs([flowRunId])
  return { seconds, flowRunIds: [flowRunId], heapBytes: 0, output }
}

/** Reads the flow runs as a client would. */
async function readOutputs(flowRunIds: readonly string[]): Promise<unknown[]> {
  const { rows } = await pool.query<{ output: unknown }>(
    `select output from flow_runs where id = any($1::uuid[]) and status = 'completed'`,
    [flowRunIds],
  )
  if (rows.length !== flowRunIds.length) throw new Error(`${rows.length} of ${flowRunIds.length} flows completed`)
  return rows.map((row) => row.output)
}
