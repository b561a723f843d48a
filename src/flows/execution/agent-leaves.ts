// The runs of agents that work for a flow run: the leaves that are agents, and the agent stages of pipelines.
import { setTimeout as delay } from 'node:timers/promises'
import { guessAgent } from '../../agents/agent-names.ts'
import { findAgent } from '../../agents/agents.ts'
import { isUnavailable } from '../../db/failures.ts'
import type { Db, Pool } from '../../db/pool.ts'
import { insertRunsSql } from '../../journal/insert-run.ts'
import { errorText } from '../../kernel/error-text.ts'
import type { AgentLeaf } from '../../kernel/flow.ts'
import { idFrom } from '../../kernel/id.ts'
import { MOST_RUNS_BELOW } from '../../kernel/limits.ts'
import type { FlowLeaf } from '../machine/flow-leaf.ts'
import { unitOf } from '../machine/leaf-id.ts'
import { beginLeafAgain, CannotBegin, NoRoom } from './continue-leaf.ts'
import type { LeafBounds } from './leaf-bounds.ts'
import { leafScope } from './leaf-scope.ts'
import { writeInBatches } from './write-in-batches.ts'

/** The ids of the runs behind an agent leaf: one, or one for each of its calls. Every replay gets the same ids. */
export function runIdsOf(flowRunId: string, { id, attempt, isEach, calls }: FlowLeaf): string[] {
  const name = `flow ${flowRunId} ${id} ${attempt}`
  return isEach ? Array.from({ length: calls }, (_, place) => idFrom(`${name} ${place}`)) : [idFrom(name)]
}

/** The id of the run of an agent stage. Failures survive a crash, so the same attempt at the same item is the same run. */
export const stageRunIdOf = (key: string, failures: number): string => idFrom(`flow ${key} ${failures}`)

type AgentFlowLeaf = FlowLeaf & { node: AgentLeaf }
type Problem = { leaf: FlowLeaf; problem: string }

export const isAgentLeaf = (leaf: FlowLeaf): leaf is AgentFlowLeaf => 'agent' in leaf.node

/** At most this many characters are rendered and written in one go. */
const MOST_CHARACTERS = 2_097_152

/** True if an earlier run may have done a part of this leaf's work. */
export const isAgain = (
  leaf: Pick<FlowLeaf, 'id' | 'attempt' | 'replaces'>,
  { flowRunIds }: Pick<LeafRuns, 'flowRunIds'>,
): boolean => leaf.attempt > 1 || flowRunIds.length > 1 || leaf.replaces.length > 0 || unitOf(leaf.id) !== leaf.id

/** A flow run without a run above it was resumed by a person; any other one was resumed as its run was. */
const isResumedByPerson = ({ flowRunIds, within }: LeafRuns): boolean =>
  flowRunIds.length > 1 && (within === null || within.resumed_by === 'person')

export interface StartedLeaves {
  /** The leaves that cannot be started, each with its problem. */
  problems: Problem[]
  /** The leaves whose earlier runs have not ended yet: they are started a moment later. */
  later: AgentFlowLeaf[]
}

/**
 * Queues the runs of leaves. The caller leaves out leaves that have all their runs, because their agents may be disabled
 * by now. Rejects only if the database cannot be reached.
 */
export async function startAgentLeaves(
  pool: Pool,
  of: LeafRuns,
  leaves: readonly AgentFlowLeaf[],
): Promise<StartedLeaves> {
  const started: StartedLeaves = { problems: [], later: [] }
  for (const [name, given] of Map.groupBy(leaves, ({ node }) => node.agent)) {
    const agent = await usableAgent(pool, of.projectId, name)
    if (typeof agent === 'string') {
      started.problems.push(...given.map((leaf) => ({ leaf, problem: agent })))
      continue
    }
    const { first = [], again = [] } = Object.groupBy(given, (leaf) => (isAgain(leaf, of) ? 'again' : 'first'))
    started.problems.push(...(await queueRuns(pool, { ...of, agent }, first)))
    for (const leaf of again) await startAgain(pool, { ...of, agent }, leaf, started)
  }
  return started
}

async function startAgain(pool: Pool, of: Insertion, leaf: AgentFlowLeaf, started: StartedLeaves): Promise<void> {
  const { agent, flowRunIds, within } = of
  const ids = runIdsOf(of.flowRunId, leaf)
  try {
    for (const [place, id] of ids.entries()) {
      const begun = await beginLeafAgain(pool, {
        fresh: freshRun(of, leaf, { id, input: leaf.argumentOf(place), place }),
        agent,
        name: leaf.nodeId ?? leaf.title ?? leaf.node.agent,
        flowRunIds,
        replaces: leaf.replaces.map((replaced) => leafScope(of.scope, replaced)),
        isResumedByPerson: isResumedByPerson(of),
        ...(within?.tree === undefined ? {} : { tree: within.tree }),
      })
      if (begun.is === 'ending') return void started.later.push(leaf)
    }
  } catch (error) {
    if (isUnavailable(error)) throw error
    started.problems.push({ leaf, problem: errorText(error) })
  }
}

function freshRun(
  { agent, projectId, flowRunId, within, scope }: Insertion,
  leaf: Pick<AgentFlowLeaf, 'id' | 'node' | 'answer' | 'isEach'>,
  { id, input, place }: { id: string; input: unknown; place: number },
) {
  return {
    id,
    projectId,
    agentId: agent.id,
    trigger: {
      type: 'flow',
      flow_run_id: flowRunId,
      task_id: leaf.id,
      ...(within?.eval_id === undefined ? {} : { eval_id: within.eval_id }),
    },
    input: input ?? null,
    maxSteps: agent.max_steps,
    timeoutMs: leaf.node.timeout ?? agent.default_timeout,
    flowRunId,
    answer: leaf.answer === null ? null : { name: leaf.answer.name, schema: { ...leaf.answer.schema } },
    depth: within?.depth ?? 0,
    chainDepth: within?.chain_depth ?? 0,
    rights: within?.rights ?? {},
    payers: within?.payers ?? [],
    keyScope: leafScope(scope, leaf.id, leaf.isEach ? place : undefined),
  }
}

async function queueRuns(db: Db, of: Insertion, leaves: readonly AgentFlowLeaf[]): Promise<Problem[]> {
  const problems = new Map<FlowLeaf, string>()
  function* calls(): Generator<{ leaf: AgentFlowLeaf; place: number; id: string }> {
    for (const leaf of leaves) {
      for (const [place, id] of runIdsOf(of.flowRunId, leaf).entries()) {
        if (problems.has(leaf)) break
        yield { leaf, place, id }
      }
    }
  }
  await writeInBatches(calls(), {
    mostCharacters: MOST_CHARACTERS,
    entryOf: ({ leaf: { id: leafId, node, answer, isEach, argumentOf }, place, id }) => {
      const scope = leafScope(of.scope, leafId, isEach ? place : undefined)
      const entry = newRun({ id, scope, leafId, node, answer, input: argumentOf(place) })
      return { entry, characters: entry.input.length }
    },
    write: (runs) => insertRuns(db, of, runs),
    refuse: ({ leaf }, error) => problems.set(leaf, errorText(error)),
  })
  return [...problems].map(([leaf, problem]) => ({ leaf, problem }))
}

/** Queues the run of an agent stage, unless an earlier owner has queued it. Returns the problem if it cannot begin. */
export async function startStageRun(
  db: Pool,
  run: LeafRuns & { id: string; keyScope: string; isAgain: boolean; leafId: string; node: AgentLeaf; input: unknown },
): Promise<{ runId: string } | { problem: string }> {
  const { node, projectId, id, leafId, input, keyScope } = run
  const agent = await usableAgent(db, projectId, node.agent)
  if (typeof agent === 'string') return (await knownRuns(db, [id])).has(id) ? { runId: id } : { problem: agent }
  try {
    if (run.isAgain) return await startStageAgain(db, { ...run, agent })
    await insertRuns(db, { ...run, agent }, [newRun({ id, scope: keyScope, leafId, node, answer: null, input })])
    return { runId: id }
  } catch (error) {
    if (error instanceof CannotBegin) return { problem: error.message }
    throw error
  }
}

/** The time between two looks at an earlier run that is about to end. */
export const ENDING_WAIT_MS = 200

async function startStageAgain(
  pool: Pool,
  run: Insertion & { id: string; keyScope: string; leafId: string; node: AgentLeaf; input: unknown },
): Promise<{ runId: string }> {
  const { id, leafId, node, input, agent, flowRunIds, keyScope, within } = run
  const fresh = freshRun(run, { id: leafId, node, answer: null, isEach: false }, { id, input, place: 0 })
  const tree = within?.tree === undefined ? {} : { tree: within.tree }
  const leaf = {
    fresh: { ...fresh, keyScope },
    agent,
    name: node.id ?? node.agent,
    flowRunIds,
    replaces: [],
    isResumedByPerson: isResumedByPerson(run),
    ...tree,
  }
  for (;;) {
    const begun = await beginLeafAgain(pool, leaf)
    if (begun.is !== 'ending') return { runId: begun.runId }
    await delay(ENDING_WAIT_MS)
  }
}

interface NewRun {
  id: string
  scope: string
  leafId: string
  input: string
  answer: string | null
  timeout: number | null
}

/** Throws if the input cannot be serialised. */
const newRun = (given: {
  id: string
  scope: string
  leafId: string
  node: AgentLeaf
  answer: FlowLeaf['answer']
  input: unknown
}): NewRun => ({
  id: given.id,
  scope: given.scope,
  leafId: given.leafId,
  input: JSON.stringify(given.input ?? null),
  answer: given.answer === null ? null : JSON.stringify(given.answer),
  timeout: given.node.timeout ?? null,
})

async function usableAgent(db: Db, projectId: string, name: string): Promise<Agent | string> {
  const agent = await findAgent(db, projectId, name)
  if (!agent) return `There is no agent called ${name}.${await guessAgent(db, projectId, name)}`
  return agent.enabled ? agent : `The agent ${agent.name} is disabled.`
}

type Agent = NonNullable<Awaited<ReturnType<typeof findAgent>>>

export interface LeafRuns {
  flowRunId: string
  /** The scope that the keys of all leaves of the flow run share. */
  scope: string
  /** This flow run and those that it resumes. */
  flowRunIds: readonly string[]
  projectId: string
  within: LeafBounds | null
}

interface Insertion extends LeafRuns {
  agent: Agent
}

const NEW_RUNS = {
  id: 'u.id',
  project_id: '$2::uuid',
  agent_id: '$3::uuid',
  trigger: `jsonb_build_object('type', 'flow', 'flow_run_id', $5::uuid, 'task_id', u.task_id) || $11::jsonb`,
  input: 'u.input',
  max_steps: '$4::int',
  timeout: 'coalesce(u.timeout, $6)',
  flow_run_id: '$5',
  answer: 'u.answer',
  depth: '$12::int',
  chain_depth: '$13::int',
  rights: '$14::jsonb',
  payers: '$15::uuid[]',
  key_scope: 'u.key_scope',
}
const FROM_LISTS =
  'from unnest($1::uuid[], $7::text[], $8::jsonb[], $9::int[], $10::jsonb[], $16::text[]) as u (id, task_id, input, timeout, answer, key_scope)'

const INSERT = `${insertRunsSql(NEW_RUNS, FROM_LISTS)} on conflict (id) do nothing`

/**
 * Inserts runs if the tree has room for them, and counts them on its uppermost flow run. A flow run that is not below
 * another has no such limit: its leaves are limited by its flow.
 */
const INSERT_COUNTED = `
  with tree as materialized (
    select runs_below from flow_runs where id = $17 for no key update
  ), room as materialized (
    select from tree where ${MOST_RUNS_BELOW} >= runs_below + (
      select count(*) from unnest($1::uuid[]) as g (id) where not exists (select from agent_runs r where r.id = g.id))
  ), added as (
    ${insertRunsSql(NEW_RUNS, `${FROM_LISTS} where exists (select from room)`)} on conflict (id) do nothing returning id
  ), counted as (
    update flow_runs set runs_below = runs_below + (select count(*) from added)
    where id = $17 and exists (select from added)
  )
  select exists (select from room) as has_room`

/** Inserts the runs that do not exist yet, and counts these alone. */
async function insertRuns(db: Db, of: Insertion, runs: readonly NewRun[]): Promise<void> {
  const { flowRunId, projectId, agent, within } = of
  const values = [
    runs.map((run) => run.id),
    projectId,
    agent.id,
    agent.max_steps,
    flowRunId,
    agent.default_timeout,
    runs.map((run) => run.leafId),
    runs.map((run) => run.input),
    runs.map((run) => run.timeout),
    runs.map((run) => run.answer),
    JSON.stringify(within?.eval_id === undefined ? {} : { eval_id: within.eval_id }),
    within?.depth ?? 0,
    within?.chain_depth ?? 0,
    JSON.stringify(within?.rights ?? {}),
    within?.payers ?? [],
    runs.map((run) => run.scope),
  ]
  if (within?.tree === undefined) {
    await db.query(INSERT, values)
    return
  }
  const { rows } = await db.query<{ has_room: boolean }>(INSERT_COUNTED, [...values, within.tree])
  if (!rows[0]?.has_room) throw new NoRoom(within.tree)
}

async function knownRuns(db: Db, runIds: readonly string[]): Promise<Set<string>> {
  const { rows } = await db.query<{ id: string }>('select id from agent_runs where id = any($1::uuid[])', [runIds])
  return new Set(rows.map(({ id }) => id))
}

/** Finds the leaves that have runs. The owner that announced a leaf may have died before it queued all its runs. */
export async function readQueued(
  db: Db,
  of: LeafRuns,
  leaves: readonly FlowLeaf[],
): Promise<{ inPart: Set<FlowLeaf>; whole: Set<FlowLeaf> }> {
  if (leaves.length === 0) return { inPart: new Set(), whole: new Set() }
  const runIds = new Map(leaves.map((leaf) => [leaf, runIdsOf(of.flowRunId, leaf)]))
  const known = await knownRuns(db, [...runIds.values()].flat())
  const isKnown = (id: string): boolean => known.has(id)
  return {
    inPart: new Set(leaves.filter((leaf) => runIds.get(leaf)?.some(isKnown))),
    whole: new Set(leaves.filter((leaf) => runIds.get(leaf)?.every(isKnown))),
  }
}
