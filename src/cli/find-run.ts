// Finds a run or a flow run: by its id, by the first letters of its id, or by the name of its agent or flow.

import { didYouMean } from '../kernel/nearest.ts'
import {
  type FlowAnswer,
  type FlowRunAnswer,
  flowAnswer,
  flowRunAnswer,
  type RunAnswer,
  readList,
  runAnswer,
} from './answers.ts'
import type { CommandContext } from './command.ts'
import { ageText } from './durations.ts'
import { CommandFailure, exitCodes, misused } from './exit-codes.ts'
import { ambiguous, matchesByName, type Nameable, unknownThing } from './find-one.ts'
import { idBeginning, isWholeId } from './short-id.ts'
import type { Workplace } from './workplace.ts'

export type FoundRun = { kind: 'run'; run: RunAnswer } | { kind: 'flow run'; run: FlowRunAnswer }

export interface Wanted {
  /** The runs for which the command can do something; absent if it can for all of them. */
  fits: (found: FoundRun) => boolean
  /** If none fits, the newest run is taken where this holds. */
  orNewest?: (found: FoundRun) => boolean
  /** The end of "Writer has no run that …": "is paused". */
  words: string
}

/** The letters that the server needs at least. */
const FEWEST_LETTERS = 8
/** The newest runs of an agent or a flow among which a fitting one is looked for. */
const MOST_LOOKED_AT = 200
const MOST_FOUND = 20
const MOST_FLOWS = 2_000

/** Without `wanted` a name means the newest run; with it, the only run that fits. */
export async function findRun(
  context: CommandContext,
  workplace: Workplace,
  reference: string,
  wanted?: Wanted,
): Promise<FoundRun> {
  const { found } = await findCandidates(context, workplace, reference, wanted)
  return onlyOf(context, workplace, reference, found)
}

/** The same, but a name means all runs that fit. */
export async function findRuns(
  context: CommandContext,
  workplace: Workplace,
  reference: string,
  wanted: Wanted,
): Promise<readonly FoundRun[]> {
  const { found, isByName } = await findCandidates(context, workplace, reference, wanted)
  return isByName ? found : [await onlyOf(context, workplace, reference, found)]
}

async function onlyOf(
  context: CommandContext,
  workplace: Workplace,
  reference: string,
  found: readonly FoundRun[],
): Promise<FoundRun> {
  const [only, ...others] = found
  if (only && others.length === 0) return only
  const candidates = found.map((each) => candidateOf(context, workplace, each))
  throw ambiguous('run', reference, await Promise.all(candidates))
}

/** At least one, or a failure that says why there is none. */
async function findCandidates(
  context: CommandContext,
  workplace: Workplace,
  reference: string,
  wanted: Wanted | undefined,
): Promise<{ found: readonly FoundRun[]; isByName: boolean }> {
  if (isWholeId(reference)) {
    return { found: [await readWhole(context, workplace, reference.toLowerCase())], isByName: false }
  }
  const owners = await findOwners(context, workplace, reference)
  const beginning = idBeginning(reference)
  const isLongEnough = beginning !== null && beginning.length >= FEWEST_LETTERS
  const found = [
    ...(await readRunsOf(context, workplace, owners.matching, wanted)),
    ...(isLongEnough ? await findByBeginning(context, workplace, beginning) : []),
  ]
  if (found.length > 0) return { found, isByName: owners.matching.length > 0 }
  const [owner] = owners.matching
  if (owner) throw misused(`${owner.names[0]} has no run ${wanted ? `that ${wanted.words}` : 'yet'}.`)
  if (beginning !== null && !isLongEnough)
    throw misused(`"${reference}" is too short for the id of a run: give at least ${FEWEST_LETTERS} letters.`)
  throw unknownThing('run, agent or flow', reference, didYouMean(reference, owners.names))
}

/** The newest run or flow run that was not started by another one. */
export async function findNewest({ client }: CommandContext, workplace: Workplace): Promise<FoundRun> {
  const [{ items: runs }, { items: flowRuns }] = await Promise.all([
    readList(client, workplace.path('runs'), runAnswer, { most: MOST_LOOKED_AT }),
    readList(client, workplace.path('flow-runs'), flowRunAnswer, { most: 1 }),
  ])
  const run = runs.find(({ parent_run_id, trigger }) => parent_run_id === null && trigger.type !== 'flow')
  const [flowRun] = flowRuns
  if (run && !(flowRun && flowRun.created_at > run.created_at)) return { kind: 'run', run }
  if (flowRun) return { kind: 'flow run', run: flowRun }
  const command = workplace.command('muster run AGENT "a task"')
  throw misused(`Nothing has run in this project yet. Start something: ${command}`)
}

async function readWhole({ client }: CommandContext, workplace: Workplace, id: string): Promise<FoundRun> {
  try {
    return { kind: 'run', run: await client.ask(workplace.path(`runs/${id}`), runAnswer) }
  } catch (error) {
    if (!isNotFound(error)) throw error
  }
  try {
    return { kind: 'flow run', run: await client.ask(workplace.path(`flow-runs/${id}`), flowRunAnswer) }
  } catch (error) {
    throw isNotFound(error) ? unknownThing('run', id) : error
  }
}

export const isNotFound = (error: unknown): boolean =>
  error instanceof CommandFailure && /NOT_FOUND$/.test(error.code) && error.exitCode === exitCodes.misused

async function findByBeginning({ client }: CommandContext, { path }: Workplace, id: string): Promise<FoundRun[]> {
  const [runs, flowRuns] = await Promise.all([
    readList(client, path('runs'), runAnswer, { query: { id }, most: MOST_FOUND }),
    readList(client, path('flow-runs'), flowRunAnswer, { query: { id }, most: MOST_FOUND }),
  ])
  return [
    ...runs.items.map((run) => ({ kind: 'run', run }) as const),
    ...flowRuns.items.map((run) => ({ kind: 'flow run', run }) as const),
  ]
}

type Owner = Nameable<{ list: 'runs'; id: string } | { list: 'flow-runs'; id: string }>

/** The agents and the flows of this name. */
async function findOwners(
  { client }: CommandContext,
  workplace: Workplace,
  name: string,
): Promise<{ matching: Owner[]; names: string[] }> {
  const [agents, flows] = await Promise.all([workplace.agents(), readFlows(client, workplace)])
  const owners: Owner[] = [
    ...agents.map(({ id, name }) => ({ id, names: [name], label: name, thing: { list: 'runs', id } as const })),
    ...flows.map(({ id, name }) => ({ id, names: [name], label: name, thing: { list: 'flow-runs', id } as const })),
  ]
  return { matching: matchesByName(name, owners), names: owners.flatMap(({ names }) => names) }
}

async function readRunsOf(
  { client }: CommandContext,
  { path }: Workplace,
  owners: readonly Owner[],
  wanted: Wanted | undefined,
): Promise<FoundRun[]> {
  const most = wanted ? MOST_LOOKED_AT : 1
  const found: FoundRun[] = []
  for (const { thing } of owners) {
    if (thing.list === 'runs') {
      const { items } = await readList(client, path('runs'), runAnswer, { query: { agent_id: thing.id }, most })
      found.push(
        ...choose(
          items.map((run) => ({ kind: 'run', run }) as const),
          wanted,
        ),
      )
    } else {
      const { items } = await readList(client, path('flow-runs'), flowRunAnswer, { query: { flow_id: thing.id }, most })
      found.push(
        ...choose(
          items.map((run) => ({ kind: 'flow run', run }) as const),
          wanted,
        ),
      )
    }
  }
  return found
}

/** The runs of one owner that are meant, the newest of which comes first. */
function choose(runs: readonly FoundRun[], wanted: Wanted | undefined): readonly FoundRun[] {
  if (!wanted) return runs
  const fitting = runs.filter(wanted.fits)
  return fitting.length > 0 ? fitting : runs.slice(0, 1).filter((found) => wanted.orNewest?.(found) ?? false)
}

export async function readFlows(client: CommandContext['client'], { path }: Workplace): Promise<FlowAnswer[]> {
  return (await readList(client, path('flows'), flowAnswer, { most: MOST_FLOWS })).items
}

export const flowCandidates = (flows: readonly FlowAnswer[]): Nameable<FlowAnswer>[] =>
  flows.map((flow) => ({ thing: flow, id: flow.id, names: [flow.name], label: flow.name }))

async function candidateOf(
  context: CommandContext,
  workplace: Workplace,
  found: FoundRun,
): Promise<Nameable<FoundRun>> {
  const { id, status, created_at } = found.run
  const name = found.kind === 'run' ? await workplace.agentName(found.run.agent_id) : `flow run, ${found.run.pattern}`
  return { thing: found, id, names: [], label: `${name}, ${status}, ${ageText(created_at, context.now())} ago` }
}
