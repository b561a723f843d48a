// The promise about effects, checked after a piece of work has ended. Each call that the plan of the model has is one
// position. The position of an execution follows from the journal: the newest announcement of its key in the run that
// executed it, or in the runs that this run continues.
//
// 1. Each execution was announced before, with its arguments and its key.
// 2. Keyed calls and functions: all executions of one position have one key, and two positions never share a key. A
//    service that knows keys has each effect once per call that the model made, whatever was retried.
// 3. Unsafe calls: before each execution after the first, a person has decided about the execution before it: the
//    person said that the call was not done, or was shown the call (its key) and let the work begin anew. So no call is
//    executed under two keys unseen, either.
// 4. Nothing is lost: if the work is completed, each position was executed or refused by a guard.
import type { Db } from '../../src/db/pool.ts'
import { type EffectScript, effectOfTool, effectsOf, positionOf } from './effect-script.ts'

/** An effect outside, as the service notes it. */
export interface Execution {
  tool: string
  args: unknown
  key: string
  /** The run, or the flow run of a function. */
  run: string
  /** The place in the order of everything that happened. */
  order: number
}

/** A person's decision that allows a call to be executed once more. */
export type Decision = { order: number } & (
  | { is: 'again'; keys: readonly string[] }
  | { is: 'not_done'; callId: string }
)

export interface EffectRecord {
  script: EffectScript
  executions: readonly Execution[]
  decisions: readonly Decision[]
  isCompleted: boolean
}

interface Announcement {
  run_id: string
  call_id: string
  name: string
  args: unknown
  key: string
}

interface Journal {
  announced: readonly Announcement[]
  /** The run that each run continues. */
  before: ReadonlyMap<string, string>
  /** The positions of calls that a guard refused. */
  refused: ReadonlySet<string>
}

async function readJournal(db: Db, projectId: string): Promise<Journal> {
  const { rows: announced } = await db.query<Announcement>(
    `select e.run_id, e.data->>'call_id' as call_id, e.data->>'name' as name, e.data->'args' as args, e.data->>'key' as key
     from run_events e join agent_runs r on r.id = e.run_id
     where r.project_id = $1 and e.kind = 'tool.started' and e.origin_seq is null order by e.at, e.seq`,
    [projectId],
  )
  const { rows: runs } = await db.query<{ id: string; base_run_id: string }>(
    'select id, base_run_id from agent_runs where project_id = $1 and base_run_id is not null',
    [projectId],
  )
  const { rows: refused } = await db.query<{ call_id: string }>(
    `select e.data->>'call_id' as call_id from run_events e join agent_runs r on r.id = e.run_id
     where r.project_id = $1 and e.kind = 'tool.completed' and e.data->>'blocked' is not null`,
    [projectId],
  )
  return {
    announced,
    before: new Map(runs.map(({ id, base_run_id: before }) => [id, before])),
    refused: new Set(refused.map(({ call_id: id }) => positionOf(id))),
  }
}

/** Returns every fault that was found. */
export async function checkEffects(db: Db, projectId: string, record: EffectRecord): Promise<string[]> {
  const journal = await readJournal(db, projectId)
  const complaints: string[] = []
  const byPosition = new Map<string, Execution[]>()
  for (const execution of record.executions) {
    const position = positionIn(journal, execution)
    if (position === null) {
      complaints.push(`${named(execution)} was not announced`)
      continue
    }
    byPosition.set(position, [...(byPosition.get(position) ?? []), execution])
  }
  const keyed = [...byPosition].filter(([, [first]]) => first?.tool !== 'refund')
  complaints.push(...keyed.flatMap(([position, executions]) => keysOf(position, executions)))
  complaints.push(...sharedKeys(keyed))
  for (const [position, executions] of byPosition) {
    if (executions[0]?.tool === 'refund') complaints.push(...unasked(position, executions, record.decisions))
  }
  if (record.isCompleted) {
    const lost = effectsOf(record.script).filter(
      ({ position }) => !byPosition.has(position) && !journal.refused.has(position),
    )
    complaints.push(...lost.map(({ position, call }) => `${position} (${call.tool}) was never executed`))
  }
  return complaints
}

const named = ({ tool, args, key }: Execution): string => `${tool} ${JSON.stringify(args)} under ${key}`

/** A function leaf names its position. */
function positionIn({ announced, before }: Journal, execution: Execution): string | null {
  const { args, key, tool } = execution
  if (!(tool in effectOfTool)) return `f${JSON.stringify(args)}`
  for (let run: string | undefined = execution.run; run !== undefined; run = before.get(run)) {
    const found = announced.findLast(
      (call) => call.run_id === run && call.key === key && JSON.stringify(call.args) === JSON.stringify(args),
    )
    if (found) return positionOf(found.call_id)
  }
  return null
}

function keysOf(position: string, executions: readonly Execution[]): string[] {
  const keys = new Set(executions.map(({ key }) => key))
  return keys.size === 1 ? [] : [`${position} (${executions[0]?.tool}) was executed under ${keys.size} keys`]
}

function sharedKeys(keyed: readonly (readonly [string, readonly Execution[]])[]): string[] {
  const owners = new Map<string, string>()
  return keyed.flatMap(([position, executions]) =>
    executions.flatMap(({ key }) => {
      const owner = owners.get(key) ?? position
      owners.set(key, owner)
      return owner === position ? [] : [`${position} and ${owner} share the key ${key}`]
    }),
  )
}

function unasked(position: string, executions: readonly Execution[], decisions: readonly Decision[]): string[] {
  return executions.slice(1).flatMap((later, index) => {
    const earlier = executions[index]
    const isAllowed = decisions.some(
      (decision) =>
        earlier !== undefined &&
        decision.order > earlier.order &&
        decision.order < later.order &&
        (decision.is === 'again' ? decision.keys.includes(earlier.key) : positionOf(decision.callId) === position),
    )
    return isAllowed ? [] : [`${position} (${later.tool}) was executed ${index + 2} times, and nobody was asked`]
  })
}
