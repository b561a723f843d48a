// A graph of five steps over one saver: ours or LangGraph's own for PostgreSQL. Each step waits until the step before
// it is committed (`durability: 'sync'`).
import type { BaseCheckpointSaver } from '@langchain/langgraph'
import { PostgresSaver } from '@langchain/langgraph-checkpoint-postgres'
import { createPool } from '../../src/db/pool.ts'
import { newId } from '../../src/kernel/id.ts'
import { silentLog } from '../../src/kernel/log.ts'
import { createCheckpoints } from '../../src/supervisor/checkpoints/checkpoints.ts'
import { fiveStepGraph } from '../kit/five-step-graph.ts'
import { timeInFlight } from '../kit/rounds.ts'
import { answerQuestions } from '../kit/side.ts'

export interface GraphQuestion {
  count: number
  inFlight: number
  /** The size of the text that every step passes on. */
  characters: number
}

interface Value {
  step: number
  text: string
}

const [which = '', url = '', poolSize = ''] = process.argv.slice(2)
const pool = createPool({ url, max: Number(poolSize), log: silentLog })
const graph = buildGraph(which === 'ours' ? await openOurs() : await openPeer())
let threads = 0

answerQuestions<GraphQuestion>(async ({ count, inFlight, characters }) => {
  const value: Value = { step: 0, text: 'x'.repeat(characters) }
  const settings = Array.from({ length: count }, () => ({
    configurable: { thread_id: `thread ${threads++}` },
    durability: 'sync' as const,
  }))
  const seconds = await timeInFlight(count, inFlight, (index) => graph.invoke({ value }, settings[index]))
  await timeInFlight(count, Number(poolSize), async (index) => {
    const kept: unknown[] = []
    for await (const { values } of graph.getStateHistory(settings[index] ?? {})) kept.push(values.value?.step)
    // Checkpoints are listed newest first; the input is a separate checkpoint before the first step.
    if (kept.join() !== '5,4,3,2,1,0,') throw new Error(`a thread kept the steps ${kept}`)
  })
  return { seconds }
})

async function openOurs(): Promise<BaseCheckpointSaver> {
  const projectId = newId()
  await pool.query('insert into projects (id, name) values ($1, $2)', [projectId, 'bench'])
  return createCheckpoints({ pool, log: silentLog }).saverFor(projectId)
}

async function openPeer(): Promise<BaseCheckpointSaver> {
  const saver = new PostgresSaver(pool)
  await saver.setup()
  return saver
}

function buildGraph(checkpointer: BaseCheckpointSaver) {
  return fiveStepGraph(({ step, text }: Value): Value => ({ step: step + 1, text }), checkpointer)
}
