// People's decisions about calls whose outcomes nobody knows. A run with several such calls continues when all of them are
// decided; until then each decision is kept in the task that asked for it.
import type { Db } from '../db/pool.ts'
import type { Settlement } from '../journal/claim.ts'
import { conflict, invalidRequest } from '../kernel/errors.ts'
import type { ResumeInput } from '../kernel/run.ts'
import type { RunEvent, UndecidedEntry } from '../kernel/run-event.ts'
import { closeOutcomeTask, decidedOutcomes } from '../tasks/outcome-tasks.ts'

/** The calls that a pause names. An event of an earlier release names one. */
export function undecidedCalls(data: Extract<RunEvent, { kind: 'run.paused' }>['data']): UndecidedEntry[] {
  if (data.calls) return data.calls
  return data.call_id && data.call ? [{ call_id: data.call_id, ...data.call }] : []
}

/**
 * Records a decision about a call of a paused run, whose row is locked. Returns all decisions when none is missing, and
 * null as long as others are. `isRecorded`: the decision was given at the task, and is recorded there.
 */
export async function recordDecision(
  db: Db,
  runId: string,
  { call_id: named, outcome, result, ...given }: ResumeInput,
  isRecorded = false,
): Promise<Settlement[] | null> {
  if (!outcome) return []
  const calls = await readUndecided(db, runId)
  const decided = await decidedOutcomes(db, runId)
  const open = calls.filter(({ call_id: id }) => !decided.has(id))
  const callId = named ?? onlyCall(open)
  if (!calls.some((call) => call.call_id === callId)) {
    throw invalidRequest(`call_id must be one of the undecided calls: ${naming(open)}.`)
  }
  if (!isRecorded && decided.has(callId)) {
    throw conflict('The outcome of this call was decided already.')
  }
  const all = new Map(decided).set(callId, { outcome, result: result ?? decided.get(callId)?.result ?? null })
  const missing = calls.filter(({ call_id: id }) => !all.has(id))
  if (missing.length > 0 && Object.values(given).some((value) => value !== undefined)) {
    throw invalidRequest(
      `The run continues when all calls are decided. Give input, max_steps and timeout with the last of them; these are open after this one: ${naming(missing)}.`,
    )
  }
  await closeOutcomeTask(db, runId, callId, { outcome, result: result ?? null })
  if (missing.length > 0) return null
  return calls.flatMap(({ call_id }) => {
    const decision = all.get(call_id)
    return decision ? [{ call_id, ...decision }] : []
  })
}

/** The decisions about calls of the run that were given so far, at the run or at their tasks. */
export async function decisionsSoFar(db: Db, runId: string): Promise<Settlement[]> {
  return [...(await decidedOutcomes(db, runId))].map(([callId, decision]) => ({ call_id: callId, ...decision }))
}

async function readUndecided(db: Db, runId: string): Promise<UndecidedEntry[]> {
  const { rows } = await db.query<{ data: Extract<RunEvent, { kind: 'run.paused' }>['data'] }>(
    `select data from run_events where run_id = $1 and kind = 'run.paused' and not data ? 'run_id'
     order by seq desc limit 1`,
    [runId],
  )
  const calls = rows[0] ? undecidedCalls(rows[0].data) : []
  if (calls.length === 0) throw new Error('a run paused with outcome_unknown does not name its calls')
  return calls
}

/** Without a call_id the decision is about the only call. */
function onlyCall([first, ...others]: readonly UndecidedEntry[]): string {
  if (!first || others.length > 0) {
    const all = naming([...(first ? [first] : []), ...others])
    throw invalidRequest(`Several calls are undecided: say with call_id which one is meant: ${all}.`)
  }
  return first.call_id
}

const naming = (calls: readonly UndecidedEntry[]): string =>
  calls.map(({ call_id, name }) => `"${call_id}" (${name})`).join(', ')
