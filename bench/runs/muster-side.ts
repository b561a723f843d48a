// Our side: the worker of this process executes whole runs from start to end; another round only appends to the
// journal.
import { createPool, type Db, type PreparedSql } from '../../src/db/pool.ts'
import { createJournal } from '../../src/journal/append.ts'
import { readEvents } from '../../src/journal/read.ts'
import { newId } from '../../src/kernel/id.ts'
import { silentLog } from '../../src/kernel/log.ts'
import { timeInFlight } from '../kit/rounds.ts'
import { answerQuestions } from '../kit/side.ts'
import { POOL_SIZE, startBenchWorker } from './bench-worker.ts'
import { createInstantModel, type Script } from './instant-model.ts'

export type MusterQuestion =
  | { do: 'runs'; script: Script; count: number; inFlight: number }
  | {
      do: 'append'
      count: number
      inFlight: number
      events: readonly { kind: string; data: Record<string, unknown> }[]
    }

export interface MusterAnswer {
  seconds: number
  events: number
  runIds: string[]
  /** The number of events in each statement of the journal. */
  batches: number[]
}

const [url = ''] = process.argv.slice(2)
const pool = createPool({ url, max: POOL_SIZE, log: silentLog })
const workers = new Map<string, ReturnType<typeof startBenchWorker>>()

answerQuestions<MusterQuestion>((question) => (question.do === 'runs' ? doRuns(question) : doAppends(question)))

async function doRuns({ script, count, inFlight }: Extract<MusterQuestion, { do: 'runs' }>): Promise<MusterAnswer> {
  const name = `${script.steps} steps of ${script.parts} parts`
  const model = createInstantModel(script)
  const starting = workers.get(name) ?? startBenchWorker(url, () => model)
  workers.set(name, starting)
  const worker = await starting
  const runIds: string[] = []
  const seconds = await timeInFlight(count, inFlight, async () => {
    const runId = await worker.start()
    runIds.push(runId)
    await worker.finished(runId)
  })
  let events = 0
  await timeInFlight(count, POOL_SIZE, async (index) => {
    const found = await requireWholeRun(runIds[index] ?? '', script)
    events += found
  })
  return { seconds, events, runIds, batches: [] }
}

/** Reads the journal of a run as a client would. Returns the number of its events. */
async function requireWholeRun(runId: string, { steps, parts }: Script): Promise<number> {
  const events = await readEvents(pool, runId)
  const count = (kind: string): number => events.filter((event) => event.kind === kind).length
  const [done, begun, answered] = [count('step.completed'), count('tool.started'), count('tool.completed')]
  const isWhole = done === steps && begun === steps - 1 && answered === steps - 1
  const last = events.at(-1)
  const hasText = JSON.stringify(last?.data).includes(`piece ${parts - 1} `)
  if (!isWhole || last?.kind !== 'run.completed' || !hasText) {
    throw new Error(`run ${runId} is not whole: ${done} steps, ${begun} calls, ${answered} results, ${last?.kind}`)
  }
  return events.length
}

/** Each of the `inFlight` runs appends, waits for the commit and appends again, until `count` appends were made. */
async function doAppends(question: Extract<MusterQuestion, { do: 'append' }>): Promise<MusterAnswer> {
  const { count, inFlight, events } = question
  const batches: number[] = []
  const journal = createJournal({ db: countingBatches(batches), log: silentLog })
  const runIds = Array.from({ length: inFlight }, () => newId())
  const projectId = newId()
  await pool.query('insert into projects (id, name) values ($1, $2)', [projectId, 'A project'])
  await pool.query(
    `insert into agent_runs (id, project_id, agent_id, trigger, input, fence, status, started_at, ready_at)
     select unnest($1::uuid[]), $2, $3, '{"type":"manual"}', '"hello"', 1, 'running', muster.now(), null`,
    [runIds, projectId, newId()],
  )
  const seconds = await timeInFlight(inFlight, inFlight, async (index) => {
    const runId = runIds[index] ?? ''
    for (let made = 0; made < count / inFlight; made++) {
      const { status } = await journal.append({ runId, fence: 1, events })
      if (status !== 'written') throw new Error(`an append was ${status}`)
    }
  })
  const written = batches.reduce((sum, size) => sum + size, 0)
  return { seconds, events: written, runIds, batches }
}

/** The statement's last list but one has the kinds of the events. */
function countingBatches(batches: number[]): Db {
  const query = pool.query.bind(pool) as Db['query'] // pg's own type says the same with more overloads
  return {
    query: (sql: string | PreparedSql, values?: readonly unknown[]) => {
      const kinds = values?.at(-2)
      if (typeof sql !== 'string' && sql.name.startsWith('journal_append'))
        batches.push(String(kinds).split(',').length)
      return query(sql, values)
    },
  }
}
