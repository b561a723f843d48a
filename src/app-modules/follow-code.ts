// The agents and flows of an app module follow its code: at each start they are made, changed and disabled in one
// transaction, under a lock that all processes share. So a mistake changes nothing, and the last start wins.
import { type AgentChanged, type AgentWrite, changeAgent, createAgent, lockAgent } from '../agents/agents.ts'
import { lockHierarchy } from '../agents/seniors.ts'
import { holdTakeUps } from '../agents/take-up-lock.ts'
import type { Db, Pool } from '../db/pool.ts'
import { afterCommit, inTransaction } from '../db/transaction.ts'
import { findFlow } from '../flows/definition/find-flow.ts'
import {
  changeFlow,
  checkFlow,
  createFlow,
  type Flow,
  type FlowInput,
  type FlowWrite,
  lockFlow,
} from '../flows/definition/flows.ts'
import type { Checking } from '../flows/definition/known-names.ts'
import { type Agent, type AgentDefinition, type AgentInput, agentDefaults, agentDefinition } from '../kernel/agent.ts'
import type { AppFlowDefinition } from '../kernel/app.ts'
import { MusterError } from '../kernel/errors.ts'
import type { Problem } from '../kernel/explain-issue.ts'
import type { Log } from '../kernel/log.ts'
import { systemActor } from '../kernel/principal.ts'
import type { Project } from '../kernel/project.ts'
import { sentenceAt } from '../kernel/sentence-at.ts'
import { type CodeChange, type CodeNoun, projectsWithAgents, putEntry, retireEntries } from './code-entries.ts'
import { findHome } from './home-project.ts'
import type { LoadedApp } from './load-app.ts'
import { sayMistakes } from './mistakes.ts'

export type AppCode = Pick<LoadedApp, 'path' | 'file' | 'project' | 'agents' | 'flows'>

export interface CodeRules {
  agents: Pick<AgentWrite, 'checkNames' | 'onChanged'>
  flows: Checking
}

/** People may give the name of an entry to another one while the entry is written: the next attempt leaves it out. */
const ATTEMPTS = 3

/**
 * An entry whose name people gave to their own agent or flow is left out, and logged. Mistakes in the code reject with
 * sentences that name the file and the entries.
 */
export async function followCode(pool: Pool, app: AppCode, rules: CodeRules, log: Log): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await followOnce(pool, app, rules, log)
    } catch (error) {
      if (attempt === ATTEMPTS || !isConflict(error)) throw error
    }
  }
}

async function followOnce(pool: Pool, app: AppCode, rules: CodeRules, log: Log): Promise<void> {
  await inTransaction(pool, async (tx) => {
    await tx.query(`select pg_advisory_xact_lock(hashtextextended('app code', 0))`)
    const project = await findHome(tx, app, log)
    // An agent may name a flow, and a flow an agent, so agents are checked, and followed, once all of them are there.
    const followUps: Parameters<AgentChanged>[] = []
    const agents = agentNoun({
      actor: systemActor,
      checkNames: async () => null,
      onChanged: async (...change) => void followUps.push(change),
    })
    const flows = flowNoun({ actor: systemActor, ...rules.flows, isCode: true })
    const following: Following = {
      app,
      rules,
      log,
      written: new Set(),
      leftOut: new Set(),
      wrong: new Set(),
      mistakes: [],
    }
    for (const id of await projectsWithAgents(tx, app.file, project?.id ?? null)) {
      await holdTakeUps(tx, id)
      await lockHierarchy(tx, id)
    }
    await writeEntries(tx, project, agents, app.agents, following)
    await writeEntries(tx, project, flows, app.flows, following)
    if (project) await checkAgents(tx, project, following)
    if (project) await checkOldFlows(tx, project, following)
    if (following.mistakes.length > 0) throw new CodeProblem(sayMistakes(app.path, following.mistakes))
    for (const change of followUps) await rules.agents.onChanged(...change)
  })
}

const agentNoun = (write: AgentWrite): CodeNoun<AgentInput, AgentDefinition, Agent> => ({
  noun: 'agent',
  table: 'agents',
  define: (input) => agentDefinition.parse({ ...agentDefaults, ...input }),
  create: (tx, projectId, input) => createAgent(tx, projectId, input, write),
  lock: lockAgent,
  change: (tx, agent, patch) => changeAgent(tx, agent, patch, write),
})

const flowNoun = (write: FlowWrite): CodeNoun<FlowInput, Required<FlowInput>, Flow> => ({
  noun: 'flow',
  table: 'flows',
  define: ({ name, root, enabled = true }) => ({ name, root, enabled }),
  create: (tx, projectId, input) => createFlow(tx, projectId, input, write),
  lock: lockFlow,
  change: (tx, flow, patch) => changeFlow(tx, flow, patch, write),
})

interface Following {
  app: AppCode
  rules: CodeRules
  log: Log
  /** The entries of the code that were made or changed. */
  written: Set<object>
  /** The entries of the code whose names are taken. */
  leftOut: Set<object>
  /** The names of entries that were refused. */
  wrong: Set<string>
  /** A sentence for each mistake, which names the entry. */
  mistakes: string[]
}

/** Entries that the code no longer has are disabled first: an entry of the code that still names one is a mistake. */
async function writeEntries<
  Input extends { name: string },
  Definition extends object,
  Stored extends { id: string; name: string; enabled: boolean },
>(
  tx: Db,
  project: Project | null,
  kind: CodeNoun<Input, Definition, Stored>,
  inputs: readonly Input[],
  following: Following,
): Promise<void> {
  const { app, log, written, leftOut } = following
  const { noun } = kind
  const gone = await retireEntries(tx, kind, project?.id ?? null, app.file, inputs)
  for (const entry of gone) tell(tx, following, noun, entry, GONE)
  if (!project) return
  for (const input of inputs) {
    const change = await noting(following, noun, input.name, () => putEntry(tx, kind, project.id, app.file, input))
    if (change === 'same') continue
    if (change === 'wrong') {
      written.add(input)
      continue
    }
    if (change === 'taken') {
      leftOut.add(input)
      afterCommit(tx, () => log.error({ project_id: project.id }, `${app.path}: ${sayTaken(noun, input, project)}`))
    } else {
      written.add(input)
      tell(tx, following, noun, input, sayChange(change))
    }
  }
}

function sayTaken(noun: string, { name }: { name: string }, project: Project): string {
  const owner = `the project "${project.name}" has ${noun === 'agent' ? 'an' : 'a'} ${noun} of this name, which no app module made`
  return `${noun} "${name}" is left out: ${owner}. Rename or delete that one, or choose another name in the code, and start Muster again.`
}

const GONE = 'is no longer in the code and was disabled'

function tell(tx: Db, { app, log }: Following, noun: string, { name }: { name: string }, what: string): void {
  afterCommit(tx, () => log.info({ [noun]: name }, `${app.path}: the ${noun} "${name}" ${what}`))
}

function sayChange(change: Exclude<CodeChange, 'same' | 'taken'>): string {
  if (change === 'new') return 'is new'
  return change === 'back' ? 'is in the code again' : `has changed in the code: ${change.join(', ')}`
}

/** A change that names something unknown is refused. An agent that stayed the same may have lost something. */
async function checkAgents(tx: Db, project: Project, following: Following): Promise<void> {
  const { app, rules, log, written, leftOut, mistakes } = following
  const warn = (sentence: string): void => afterCommit(tx, () => log.warn({ project_id: project.id }, sentence))
  for (const agent of app.agents.filter((each) => !leftOut.has(each))) {
    const definition = agentDefinition.parse({ ...agentDefaults, ...agent })
    const idle = idleField(definition)
    if (idle !== null) warn(`${app.path}: agent "${agent.name}": ${idle}`)
    const goneFlow = await flowThatLeft(tx, project.id, definition.flow)
    const problem = goneFlow ?? (await rules.agents.checkNames(tx, project.id, definition))
    if (problem === null || isConsequence(problem, following)) continue
    const sentence = `agent "${agent.name}": ${problem}`
    if (goneFlow !== null || written.has(agent)) mistakes.push(sentence)
    else warn(`${app.path}: ${sentence}`)
  }
}

/** An agent may keep its schedule while something else starts it, so this is no mistake; but few authors mean it. */
function idleField({ cron_schedule, reaction_config, trigger_type }: AgentDefinition): string | null {
  const say = (field: string, type: string): string =>
    `${field} has no effect, because trigger_type is "${trigger_type}". Add trigger_type: "${type}".`
  if (cron_schedule !== null && trigger_type !== 'schedule') return say('cron_schedule', 'schedule')
  return reaction_config !== null && trigger_type !== 'reaction' ? say('reaction_config', 'reaction') : null
}

async function flowThatLeft(tx: Db, projectId: string, name: string | null): Promise<string | null> {
  const flow = name === null ? null : await findFlow(tx, projectId, name)
  return flow?.has_left_code ? `flow: there is no flow called "${name}". It is no longer in the code.` : null
}

/** Flows that were written now were checked then. */
async function checkOldFlows(
  tx: Db,
  project: Project,
  { app, rules, log, written, leftOut, mistakes }: Following,
): Promise<void> {
  for (const flow of app.flows.filter((each) => !written.has(each) && !leftOut.has(each))) {
    const all = await problemsOf(tx, project.id, flow, { ...rules.flows, isCode: true })
    if (all.length === 0) continue
    const lost = await problemsOf(tx, project.id, flow, rules.flows)
    const gone = all.filter(({ path }) => lost.every((each) => each.path !== path))
    if (gone.length > 0) {
      mistakes.push(`flow "${flow.name}": ${sayProblems(gone)}`)
      continue
    }
    const sentence = `${app.path}: flow "${flow.name}": ${sayProblems(lost)}`
    afterCommit(tx, () => log.warn({ project_id: project.id }, sentence))
  }
}

async function problemsOf(
  tx: Db,
  projectId: string,
  { root }: AppFlowDefinition,
  checking: Checking,
): Promise<Problem[]> {
  const checked = await checkFlow(tx, projectId, root, checking)
  return checked.isValid ? [] : checked.problems
}

class CodeProblem extends Error {}

const isConflict = (error: unknown): boolean =>
  error instanceof CodeProblem && error.cause instanceof MusterError && error.cause.code === 'CONFLICT'

const MOST_PROBLEMS = 20

/**
 * An entry that is refused is noted, and the others are tried: no statement has failed, and the transaction is rolled
 * back at the end. A conflict ends it at once, and failures of other kinds (the database is away) stay as they are.
 */
async function noting<Result>(
  following: Following,
  noun: string,
  name: string,
  work: () => Promise<Result>,
): Promise<Result | 'wrong'> {
  try {
    return await work()
  } catch (error) {
    if (!(error instanceof MusterError)) throw error
    if (error.code === 'CONFLICT')
      throw new CodeProblem(`${following.app.path}: ${noun} "${name}": ${error.message}`, { cause: error })
    if (error.code !== 'INVALID_REQUEST') throw error
    const said = sayAll(error, following)
    if (said !== null) following.mistakes.push(`${noun} "${name}": ${said}`)
    following.wrong.add(name)
    return 'wrong'
  }
}

/** All faulty nodes of a flow, as requireFlow lists them; null if they only name entries that are wrong. */
function sayAll({ details, message }: MusterError, following: Following): string | null {
  const all = (details?.errors ?? []) as readonly Problem[] // requireFlow throws these
  if (all.length === 0) return message
  const own = all.filter((problem) => !isConsequence(problem.message, following))
  return own.length === 0 ? null : sayProblems(own)
}

/** True if the problem is only that an entry is missing which is in the code and was refused itself. */
function isConsequence(problem: string, { wrong }: Following): boolean {
  const named = /there is no (?:agent|flow|flow and no template) called (.*)$/.exec(problem)?.[1]
  if (named === undefined) return false
  return [...wrong].some((name) => named === name || named.startsWith(`${name}.`) || named.startsWith(`"${name}"`))
}

function sayProblems(problems: readonly Problem[]): string {
  const [first, second] = problems
  if (first && !second) return sentenceAt(first.path, first.message)
  const said = problems
    .slice(0, MOST_PROBLEMS)
    .map((problem) => `${problem.path}: ${problem.message.replace(/[.]$/, '')}`)
    .join('; ')
  if (problems.length > MOST_PROBLEMS) return `${said}; and ${problems.length - MOST_PROBLEMS} more.`
  return said.endsWith('?') ? said : `${said}.`
}
