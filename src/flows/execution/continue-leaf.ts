// An agent leaf that is tried again: by its own retry, by a retry of a pattern around it, by a queen, or because its flow
// run was resumed. Its run continues the newest run of the same work, so that finished calls are not made again. If that
// cannot be, it begins anew; after a call that must not be repeated unseen the new run is held until a person decides.
import { MARK_CHANGED } from '../../db/changed-in.ts'
import type { Db, Pool } from '../../db/pool.ts'
import { inTransaction } from '../../db/transaction.ts'
import type { Settlement } from '../../journal/claim.ts'
import { callsOfRun, hasUnsafe, type MadeCall } from '../../journal/finished-calls.ts'
import { insertRun, type NewRun } from '../../journal/insert-run.ts'
import type { Agent } from '../../kernel/agent.ts'
import { CONTINUE } from '../../kernel/continue-phrase.ts'
import { MOST_RUNS_BELOW } from '../../kernel/limits.ts'
import { rightsOfBoth } from '../../kernel/rights.ts'
import {
  canContinue,
  continuationRun,
  type EarlierRun,
  hasStartedFlow,
  lockEarlier,
  lostTools,
} from '../../runs/continue-run.ts'
import { decisionsSoFar } from '../../runs/decisions.ts'
import { askBeginAnew, type BeginAnew, decisionAbout, STOPPED } from '../../tasks/begin-anew-tasks.ts'
import { effectsParagraph } from '../../tasks/made-calls-text.ts'
import { withdrawOutcomeTasks } from '../../tasks/outcome-tasks.ts'

export interface RetriedLeaf {
  /** The run as it is begun where nothing can be continued. */
  fresh: NewRun & { flowRunId: string; keyScope: string }
  agent: Pick<Agent, 'id' | 'name' | 'tools' | 'steps' | 'flow_type' | 'max_steps'>
  /** The name of the leaf, for people. */
  name: string
  /** The flow runs that this one resumes, and itself. */
  flowRunIds: readonly string[]
  /** The scopes of leaves whose work this leaf is given instead. */
  replaces: readonly string[]
  /** True if a person resumed the flow run, and so asked to continue the runs of the flow runs before it. */
  isResumedByPerson: boolean
  /** The uppermost flow run, which counts the runs below it. */
  tree?: string
}

/** The run does not begin, and the leaf fails with this message. */
export class CannotBegin extends Error {}

/** The tree has so many runs that this one does not begin. */
export class NoRoom extends CannotBegin {
  constructor(tree: string) {
    super(`The flow run ${tree} has reached its limit of ${MOST_RUNS_BELOW} runs of agents in all flow runs below it.`)
  }
}

/** begun: the run is queued, or held for a person · done: an earlier run has completed this work · ending: try later. */
export type BegunLeaf = { is: 'begun' | 'done'; runId: string } | { is: 'ending' }

/** An owner that has lost the flow run may begin the same leaf: one of the two inserts the run, the other does nothing. */
export async function beginLeafAgain(pool: Pool, leaf: RetriedLeaf): Promise<BegunLeaf> {
  return inTransaction(pool, async (tx) => {
    const known: BegunLeaf = { is: 'begun', runId: leaf.fresh.id }
    if (await isKnown(tx, leaf.fresh.id)) return known
    const earlier = await newestRun(tx, leaf)
    if (!earlier) return beginInstead(tx, leaf)
    // The run may have been inserted while this transaction waited for the lock of the earlier one.
    if (await isKnown(tx, leaf.fresh.id)) return known
    // The flow asks for a decision again only if the last answer did not fit, so a completed run does not finish the leaf.
    if (earlier.status === 'completed' && !leaf.fresh.answer) return { is: 'done', runId: earlier.id }
    if (earlier.completed_at === null || earlier.has_open_children) return { is: 'ending' }
    const isByPerson = leaf.isResumedByPerson && earlier.flow_run_id !== leaf.fresh.flowRunId
    if (await mayContinue(tx, leaf, earlier, isByPerson)) {
      return continueRun(tx, leaf, earlier, isByPerson)
    }
    return beginAnew(tx, leaf, earlier.id, await callsOfRun(tx, earlier.id))
  })
}

/** The new run asks about the calls that nobody has decided about; the questions of the earlier run are withdrawn. */
async function continueRun(tx: Db, leaf: RetriedLeaf, earlier: EarlierRun, isByPerson: boolean): Promise<BegunLeaf> {
  const isUndecided = earlier.pause_reason === 'outcome_unknown'
  // Decisions may have come after the flow run had ended.
  const settled = isUndecided ? await decisionsSoFar(tx, earlier.id) : []
  await insert(tx, leaf, continued(leaf, earlier, { isByPerson, settled }))
  if (isUndecided) await withdrawOutcomeTasks(tx, [earlier.id])
  return { is: 'begun', runId: leaf.fresh.id }
}

/** The first run of a leaf, which may be given work that other runs have begun. */
async function beginInstead(tx: Db, leaf: RetriedLeaf): Promise<BegunLeaf> {
  const calls: MadeCall[] = []
  let lastId: string | null = null
  for (const scope of leaf.replaces) {
    const earlier = await newestRun(tx, leaf, scope)
    if (!earlier) continue
    if (earlier.completed_at === null || earlier.has_open_children) return { is: 'ending' }
    calls.push(...(await callsOfRun(tx, earlier.id)))
    lastId = earlier.id
  }
  if (lastId !== null) return beginAnew(tx, leaf, lastId, calls)
  await insert(tx, leaf, leaf.fresh)
  return { is: 'begun', runId: leaf.fresh.id }
}

/** The run begins without the history of the earlier one, and is told its calls. After an unsafe call a person decides. */
async function beginAnew(tx: Db, leaf: RetriedLeaf, earlierId: string, calls: readonly MadeCall[]): Promise<BegunLeaf> {
  const mustAsk = hasUnsafe(calls)
  const decision = mustAsk ? await decisionSoFar(tx, leaf, earlierId) : null
  if (decision === 'stop') throw new CannotBegin(STOPPED)
  const isNew = await insert(tx, leaf, { ...leaf.fresh, input: told(leaf.fresh.input, calls) })
  if (isNew && mustAsk && decision === null) await holdForPerson(tx, leaf, earlierId, calls)
  return { is: 'begun', runId: leaf.fresh.id }
}

/** A stop is not the last word: a person who resumes the flow run after it is asked once more. */
async function decisionSoFar(
  tx: Db,
  { fresh, isResumedByPerson }: RetriedLeaf,
  earlierId: string,
): Promise<BeginAnew | null> {
  const given = await decisionAbout(tx, fresh.keyScope, earlierId)
  if (given?.is === 'stop' && isResumedByPerson && given.flowRunId !== fresh.flowRunId) return null
  return given?.is ?? null
}

async function isKnown(tx: Db, runId: string): Promise<boolean> {
  return (await tx.query('select from agent_runs where id = $1', [runId])).rowCount === 1
}

/** Counts a new run on the uppermost flow run, if there is one. False: another owner has inserted the run. */
async function insert(tx: Db, { tree }: RetriedLeaf, run: NewRun): Promise<boolean> {
  if (!(await insertRun(tx, run))) return false
  if (tree === undefined) return true
  const { rowCount } = await tx.query(
    `update flow_runs set runs_below = runs_below + 1 where id = $1 and runs_below < ${MOST_RUNS_BELOW}`,
    [tree],
  )
  if (rowCount === 0) throw new NoRoom(tree)
  return true
}

/** A run that was held and never began has no history: the work stands where the run before it left it. */
async function newestRun(
  tx: Db,
  { fresh, flowRunIds }: RetriedLeaf,
  scope = fresh.keyScope,
): Promise<EarlierRun | null> {
  const { rows } = await tx.query<{ id: string }>(
    `select id from agent_runs where flow_run_id = any($1::uuid[]) and key_scope = $2
       and (started_at is not null or resumed_from is not null or completed_at is null)
     order by created_at desc, id desc limit 1`,
    [flowRunIds, scope],
  )
  return rows[0] ? lockEarlier(tx, fresh.projectId, rows[0].id) : null
}

/** A decision of a flow makes no calls, so it is asked for anew. */
async function mayContinue(
  tx: Db,
  { agent, fresh }: RetriedLeaf,
  earlier: EarlierRun,
  isByPerson: boolean,
): Promise<boolean> {
  if (earlier.agent_id !== agent.id || earlier.continued_by !== null || fresh.answer) return false
  if (agent.flow_type !== 'flow' && (await hasStartedFlow(tx, earlier.id))) return false
  if (isByPerson) return true
  return canContinue(earlier) && (await lostTools(tx, earlier.id, agent)).length === 0
}

function continued(
  { fresh, agent }: RetriedLeaf,
  earlier: EarlierRun,
  { isByPerson, settled }: { isByPerson: boolean; settled: Settlement[] },
): NewRun {
  const isFlow = agent.flow_type === 'flow'
  const run = continuationRun(earlier, {
    id: fresh.id,
    trigger: {
      ...fresh.trigger,
      ...(isByPerson ? { resumed_by: 'person' } : {}),
      ...(settled.length > 0 ? { settled } : {}),
    },
    input: isFlow ? null : continuationText(earlier),
    maxSteps: fresh.maxSteps,
    timeoutMs: fresh.timeoutMs,
  })
  return {
    ...run,
    rights: { ...rightsOfBoth(fresh.rights ?? {}, earlier.rights) },
    flowRunId: fresh.flowRunId,
    keyScope: fresh.keyScope,
    depth: fresh.depth ?? 0,
  }
}

function continuationText({ error_message: error }: EarlierRun): string {
  const told = `${CONTINUE} Calls that have a result were made and stand.`
  return error === null ? told : `${told}\n\nThe last attempt failed: ${error}`
}

/** A fresh start is told the calls of the attempts before it. */
function told(input: unknown, calls: readonly MadeCall[]): unknown {
  if (calls.length === 0) return input
  const text = typeof input === 'string' ? input : JSON.stringify(input ?? null)
  return `${text}\n\n${effectsParagraph(calls)}\nDo not make a call again whose effect is there already.`
}

/** The new run waits like a run that has asked a question; the answer wakes it, or ends it. A run at work is not held. */
async function holdForPerson(tx: Db, leaf: RetriedLeaf, earlierId: string, calls: readonly MadeCall[]): Promise<void> {
  const { fresh, agent, name } = leaf
  const { rowCount } = await tx.query(
    `update agent_runs set status = 'paused', pause_reason = 'human', waits_for = 'human', waiting_for = 'person',
       ready_at = null, ${MARK_CHANGED} where id = $1 and owner is null and started_at is null`,
    [fresh.id],
  )
  if (rowCount === 0) return
  await askBeginAnew(tx, {
    projectId: fresh.projectId,
    agentId: agent.id,
    workId: fresh.keyScope,
    work: `the task "${name}" of a flow`,
    earlierRunId: earlierId,
    heldRunId: fresh.id,
    metadata: { flow_run_id: fresh.flowRunId },
    calls,
  })
}
