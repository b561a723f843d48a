// The outcomes of agent leaves, from the runs that decide about them.
import type { Db } from '../../db/pool.ts'
import { callsOfRun, type MadeCall } from '../../journal/finished-calls.ts'
import { type ChildOutcome, readEnded, readNewest } from '../../runs/run-outcomes.ts'
import { linesOf } from '../../tasks/made-calls-text.ts'
import type { FlowLeaf } from '../machine/flow-leaf.ts'
import type { LeafOutcome } from '../machine/machine.ts'
import { isAgain, type LeafRuns, runIdsOf } from './agent-leaves.ts'
import { leafScope } from './leaf-scope.ts'

/** Leaves whose runs have all ended, with their outcomes. */
export async function settledAgents(
  db: Db,
  of: LeafRuns,
  leaves: readonly FlowLeaf[],
): Promise<{ leaf: FlowLeaf; outcome: LeafOutcome }[]> {
  if (leaves.length === 0) return []
  const runIds = leaves.map((leaf) => runIdsOf(of.flowRunId, leaf))
  const outcomes = await readEnded(db, runIds.flat())
  const newest = await newestOf(db, of, leaves, outcomes)
  const settled: { leaf: FlowLeaf; outcome: LeafOutcome }[] = []
  for (const [place, leaf] of leaves.entries()) {
    const ids = runIds[place] ?? []
    const ended = ids.flatMap((id, at) => {
      const later = newest.get(leafScope(of.scope, leaf.id, leaf.isEach ? at : undefined))
      return settledRun(outcomes.get(id), later) ?? []
    })
    if (ended.length === ids.length) settled.push({ leaf, outcome: await joinedOutcome(db, leaf, ended) })
  }
  return settled
}

/**
 * The run that decides about a leaf. An earlier run may have completed the same work; a run whose call is undecided
 * waits for a person, whose word continues it in another run, unless it was asked to end.
 */
function settledRun(own: ChildOutcome | undefined, newest: ChildOutcome | undefined): ChildOutcome | null {
  if (newest?.status === 'completed') return newest
  if (!own) return null
  if (own.pauseReason !== 'outcome_unknown' || !newest) return own
  return newest.hasEnded && (newest.pauseReason !== 'outcome_unknown' || newest.isCancelled) ? newest : null
}

/** The newest runs of leaves that are tried again, or whose runs have an undecided call, by scope. */
async function newestOf(
  db: Db,
  of: LeafRuns,
  leaves: readonly FlowLeaf[],
  outcomes: ReadonlyMap<string, ChildOutcome>,
): Promise<Map<string, ChildOutcome>> {
  const scopes = leaves.flatMap((leaf) =>
    runIdsOf(of.flowRunId, leaf).flatMap((id, place) =>
      (isAgain(leaf, of) && leaf.answer === null) || outcomes.get(id)?.pauseReason === 'outcome_unknown'
        ? [leafScope(of.scope, leaf.id, leaf.isEach ? place : undefined)]
        : [],
    ),
  )
  return scopes.length === 0 ? new Map() : readNewest(db, of.flowRunIds, scopes)
}

async function joinedOutcome(db: Db, leaf: FlowLeaf, runs: readonly ChildOutcome[]): Promise<LeafOutcome> {
  const values: unknown[] = []
  for (const run of runs) {
    const outcome = outcomeOfRun(run)
    if (outcome.status === 'failed') return withCalls(outcome, await callsOfRun(db, run.id))
    values.push(outcome.value)
  }
  return { status: 'completed', value: leaf.isEach ? values : values[0] }
}

/** A queen must know the calls of a worker that failed: they stand, whoever does the rest. */
const withCalls = (outcome: FailedLeaf, calls: readonly MadeCall[]): LeafOutcome =>
  calls.length === 0 ? outcome : { ...outcome, made: linesOf(calls) }

type FailedLeaf = Extract<LeafOutcome, { status: 'failed' }>

/** A longer summary is cut in the error of a leaf; the run has all of it. */
const MAX_SUMMARY = 16_384

/** The outcome of a leaf with this run. The error of a run that has paused gives the reason and keeps the summary. */
export function outcomeOfRun({ id, status, pauseReason, summary, errorMessage }: ChildOutcome): LeafOutcome {
  if (status === 'completed') return { status, value: summary ?? '' }
  if (status !== 'paused') return { status: 'failed', error: errorMessage ?? `The run ${id} is ${status}.` }
  const said = [errorMessage, summary && cut(summary)].filter((text) => text).join(' ')
  const paused = `The run ${id} is paused (${pauseReason ?? 'no reason given'})`
  return { status: 'failed', error: said === '' ? `${paused}.` : `${paused}: ${said}` }
}

const cut = (summary: string): string =>
  summary.length <= MAX_SUMMARY ? summary : `${summary.slice(0, MAX_SUMMARY).toWellFormed()} …`
