// Two workers over one database execute random flow trees, with crashes and cancels in the middle of calls. The calls
// are compared with the journal at each crash, and the results with the meaning of the tree.
import type { Db } from '../../src/db/pool.ts'
import { inTransaction } from '../../src/db/transaction.ts'
import type { FunctionContext } from '../../src/flows/definition/function-context.ts'
import { cancelFlow } from '../../src/flows/execution/cancel.ts'
import { freeOrphanedFlows } from '../../src/flows/execution/claim.ts'
import { freeOrphanedHandouts } from '../../src/flows/execution/handouts.ts'
import { getFlowRun } from '../../src/flows/history/flow-runs.ts'
import type { BuiltInNode } from '../../src/flows/machine/built-in-patterns.ts'
import type { FlowRun } from '../../src/kernel/flow-run.ts'
import { systemActor } from '../../src/kernel/principal.ts'
import { forgetWorker } from '../../src/queue/workers.ts'
import { callTreeFunction, meaningOf, treeFunctions } from './flow-tree.ts'
import { createTestFlows, type TestFlows } from './flows.ts'

/** Lost: the owner finds that it no longer owns the flow. Dead: the whole process is declared dead. */
export interface Crash {
  /** The crash happens during this call of a function of the flow, from 1. */
  at: number
  kind: 'lost' | 'dead'
}

export interface ChaosCase {
  root: BuiltInNode
  crashes: readonly Crash[]
  cancelAt: number | null
  workers: number | null
  /** The duration of each leaf, in turns of the event loop. */
  turns: number
  startedBy: 0 | 1
}

export interface Chaos {
  flows: readonly [TestFlows, TestFlows]
  /** Returns every fault that was found. */
  play(given: ChaosCase): Promise<string[]>
  /** Counts of ends by status, crashes by kind and repeated calls so far: they show that something happened. */
  happened: ReadonlyMap<string, number>
  /** Leaves that were called once more than allowed after the end of their flows. */
  calledAfterwards: readonly string[]
}

/** The history of one flow run. */
interface Life {
  given: ChaosCase
  called: number
  /** The number of calls of each leaf, by attempt and key. */
  calls: Map<string, number>
  /** The number of further calls that are allowed, because the leaf was under way at a crash. */
  excused: Map<string, number>
  /** Leaves whose function has given a value. */
  gave: Set<string>
  /** The leaves that had begun when the flow was cancelled. */
  begunBefore: Set<string> | null
  late: string[]
  /** True after a crash of the flow run or of its process. */
  wasHit: boolean
  isOver: boolean
}

const turn = (): Promise<void> => new Promise(setImmediate)
const input = 0

export async function createChaos(): Promise<Chaos> {
  // The lease is long, so that a busy machine does not lose it: the checks would take the repeated calls for faults.
  const options = { leafLimit: 3, leaseMs: 9_000 }
  const one = await createTestFlows(options)
  const other = await createTestFlows({ ...options, database: one })
  const { pool, projectId } = one
  const lives = new Map<string, Life>()
  const happened = new Map<string, number>()
  const calledAfterwards: string[] = []
  const count = (what: string, times = 1): void => void happened.set(what, (happened.get(what) ?? 0) + times)
  for (const { functions } of [one, other]) {
    for (const name of treeFunctions) {
      functions.set(name, async (argument: never, context) => {
        const life = await lifeOf(context.run_id)
        const leaf = leafOf(context as FunctionContext)
        note(life, leaf, (context as FunctionContext).scope ?? '')
        if (life.isOver) calledAfterwards.push(...overcalled(life))
        await befall(life, context.run_id, ++life.called)
        for (let turns = 0; turns < life.given.turns; turns++) await turn()
        const value = callTreeFunction(name, argument, context.attempt)
        life.gave.add(leaf)
        return value
      })
    }
  }

  /** The first leaf may be called before its flow is known here. */
  async function lifeOf(runId: string): Promise<Life> {
    for (;;) {
      const life = lives.get(runId)
      if (life) return life
      await turn()
    }
  }

  async function befall(life: Life, runId: string, call: number): Promise<void> {
    for (const { at, kind } of life.given.crashes) {
      if (at === call) await (kind === 'lost' ? lose(runId) : killOwner(runId))
    }
    if (life.given.cancelAt !== call || !(await cancelFlow(pool, projectId, runId, systemActor))) return
    life.begunBefore = new Set([...(await readLeafStates(pool, runId)).keys(), ...leavesOf(life)])
  }

  async function lose(runId: string): Promise<void> {
    const life = lives.get(runId)
    if (!life) return
    const leafStates = await inTransaction(pool, async (tx) => {
      await tx.query(
        `update flow_runs set fence = fence + 1, owner = null, ready_at = muster.now()
         where id = $1 and completed_at is null`,
        [runId],
      )
      return readLeafStates(tx, runId)
    })
    excuse(life, leafStates)
    count('lost')
    pokeAll()
  }

  /**
   * Gives all work of the owner to another worker. The counts of crashes are reset, so that no flow run is given up.
   */
  async function killOwner(runId: string): Promise<void> {
    const states = await inTransaction(pool, async (tx) => {
      // The dead process must claim nothing under its old name at this moment.
      await tx.query('lock table workers')
      // A dead worker returns with its next renewal. Until then the other worker must live, or all work waits.
      const { rows } = await tx.query<{ owner: string }>(
        `select owner from flow_runs where id = $1 and owner is not null and (select count(*) from workers) > 1`,
        [runId],
      )
      const owner = rows[0]?.owner
      if (!owner) return []
      await forgetWorker(tx, owner)
      await freeOrphanedFlows(tx)
      await freeOrphanedHandouts(tx)
      await tx.query('update flow_runs set crashes = 0 where crashes > 0')
      await tx.query('update flow_handouts set crashes = 0 where crashes > 0')
      const all: [Life, LeafStates][] = []
      for (const [id, life] of lives) if (!life.isOver) all.push([life, await readLeafStates(tx, id)])
      return all
    })
    for (const [life, leafStates] of states) excuse(life, leafStates)
    if (states.length > 0) count('dead')
    pokeAll()
  }

  function pokeAll(): void {
    for (const { flowWorker } of [other, one]) flowWorker.poke()
  }

  return {
    flows: [one, other],
    happened,
    calledAfterwards,
    play: async (given) => {
      const starter = given.startedBy === 0 ? one : other
      const { root, workers } = given
      const id = await starter.startFlow(root, { input, ...(workers === null ? {} : { workers }) })
      const life: Life = {
        given,
        called: 0,
        calls: new Map(),
        excused: new Map(),
        gave: new Set(),
        begunBefore: null,
        late: [],
        wasHit: false,
        isOver: false,
      }
      lives.set(id, life)
      // The process that started the flow may be dead.
      pokeAll()
      const isStuck = await Promise.race([one.ended(id).then(() => false), longWait()])
      life.isOver = true
      if (isStuck) return [`has not ended: ${write(await one.read(id))} ${write(await one.flowKinds(id))}`]
      const run = await getFlowRun(pool, projectId, id, 50)
      // A lease was lost because the machine stood still for long, not by an act of this test; nothing can be checked
      // then.
      const { crashes } = await one.read(id)
      if (crashes > 0) {
        count('unforeseen')
        return []
      }
      count(run.status)
      count('repeated', [...life.calls.values()].filter((times) => times > 1).length)
      const { rows: events } = await pool.query<JournalRow>(
        'select seq::int, kind, data from flow_events where run_id = $1 order by seq',
        [id],
      )
      return [...complaintsAbout(life, run, takenOver(events)), ...complaintsAboutJournal(run, events)]
    },
  }
}

/** The recorded leaves: each has begun, or has ended too. */
type LeafStates = ReadonlyMap<string, 'begun' | 'ended'>

async function readLeafStates(db: Db, runId: string): Promise<LeafStates> {
  const { rows } = await db.query<{ kind: string; leaf: string }>(
    `select kind, data->>'attempt' || ' ' || (data->>'task_id') as leaf from flow_events
     where run_id = $1 and kind in ('task.started', 'task.completed', 'task.failed') order by seq`,
    [runId],
  )
  return new Map(rows.map(({ kind, leaf }) => [leaf, kind === 'task.started' ? 'begun' : 'ended']))
}

/** A leaf that had begun by the journal or the ledger, and not ended by the journal, may be called once more. */
function excuse(life: Life, leafStates: LeafStates): void {
  life.wasHit = true
  // The first leaves may be called before their record is committed; other leaves are recorded before their call.
  const known = leafStates.size === 0 ? leavesOf(life) : leafStates.keys()
  for (const leaf of new Set(known)) {
    if (leafStates.get(leaf) !== 'ended') life.excused.set(leaf, (life.excused.get(leaf) ?? 0) + 1)
  }
}

/** True after far longer than any of these flows takes: a flow that hangs is reported, not waited for. */
async function longWait(): Promise<true> {
  await new Promise((resolve) => setTimeout(resolve, 20_000).unref())
  return true
}

/** Every life of a leaf has an id of its own; the scope of its keys is the same in all of them. */
const leafOf = ({ leafId, attempt }: FunctionContext): string => `${attempt} ${leafId}`
const leavesOf = ({ calls }: Life): string[] => [...calls.keys()].map((call) => call.split(':')[0] ?? '')

function note(life: Life, leaf: string, scope: string): void {
  // A leaf with several calls has a scope for each call.
  const [, , place] = scope.split(':')
  const call = place === undefined ? leaf : `${leaf}:${place}`
  life.calls.set(call, (life.calls.get(call) ?? 0) + 1)
  if (life.begunBefore && !life.begunBefore.has(leaf)) life.late.push(leaf)
}

function overcalled({ calls, excused }: Life): string[] {
  return [...calls].flatMap(([call, times]) => {
    const most = 1 + (excused.get(call.split(':')[0] ?? '') ?? 0)
    return times <= most ? [] : [`${call} was called ${times} times, ${most} at most`]
  })
}

function complaintsAbout(life: Life, run: FlowRun, takenOver: number): string[] {
  const { root } = life.given
  const expected = meaningOf(root, input)
  const { total, pending, running, completed, failed, skipped } = run.progress
  const complaints: string[] = []
  const check = (isRight: boolean, complaint: () => string): void => void (isRight || complaints.push(complaint()))
  const same = (what: string, is: unknown, shouldBe: unknown): void =>
    check(JSON.stringify(is) === JSON.stringify(shouldBe), () => `${what}: ${write(is)}, expected ${write(shouldBe)}`)

  check(completed + failed + skipped === total, () => `the progress does not add up: ${write(run.progress)}`)
  same('under way after the end', [pending, running], [0, 0])
  complaints.push(...overcalled(life))
  if (life.begunBefore) same('begun after the cancel', life.late, [])
  // If no leaf was left to begin, the flow may end before its owner has heard of the cancel.
  if (life.begunBefore && run.status === 'cancelled') {
    for (const [id, value] of Object.entries(run.results)) {
      const isKnown = expected.gave[id]?.some((given) => JSON.stringify(given) === JSON.stringify(value))
      check(isKnown === true, () => `${id} never gave ${write(value)}`)
    }
    // A result that came after the cancel is kept as well. After a crash such a result may be lost. A leaf that a retry
    // of its node took over is completed once more, without a call.
    if (!life.wasHit) same('the completed leaves', completed, life.gave.size + takenOver)
    return complaints
  }
  same('the status', run.status, expected.status)
  same('the output', run.output, expected.value)
  same('the results', sorted(run.results), sorted(expected.results))
  same('completed and failed', [completed, failed], [expected.completed, expected.failed])
  same('different calls', life.calls.size, expected.calls)
  return complaints
}

interface JournalRow {
  seq: number
  kind: string
  data: { task_id?: string; attempt?: number; taken_over?: boolean }
}

const takenOver = (events: readonly JournalRow[]): number =>
  events.filter(({ kind, data }) => kind === 'task.completed' && data.taken_over).length

/** Checks that no event is missing, that no event follows the end, and that no leaf ends twice. */
function complaintsAboutJournal({ status }: FlowRun, events: readonly JournalRow[]): string[] {
  const complaints: string[] = []
  if (events.some(({ seq }, index) => seq !== index + 1)) complaints.push('the journal has gaps')
  const last = events.findIndex(({ kind }) => kind === `flow.${status}`)
  if (last !== events.length - 1) complaints.push(`the journal does not end with flow.${status}`)
  const ends = new Set<string>()
  for (const { kind, data } of events) {
    if (kind !== 'task.completed' && kind !== 'task.failed') continue
    const leaf = `${data.attempt} ${data.task_id}`
    if (ends.has(leaf)) complaints.push(`${leaf} ended twice`)
    ends.add(leaf)
  }
  return complaints
}

const sorted = (values: Record<string, unknown>) => Object.entries(values).toSorted(([a], [b]) => (a < b ? -1 : 1))
const write = (value: unknown): string => JSON.stringify(value)
