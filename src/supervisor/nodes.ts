// The work of the nodes of a supervisor's graph. Each node is a function of the graph's state and of the run's journal:
// executed again after a crash it asks no question twice and starts no run twice.

import type { Db } from '../db/pool.ts'
import { cleanText } from '../journal/clean-json.ts'
import { type NewRun, placeBelow } from '../journal/insert-run.ts'
import { spawnRun } from '../journal/spawn-run.ts'
import { readDecision } from '../kernel/decision.ts'
import { fault } from '../kernel/fault.ts'
import { idFrom } from '../kernel/id.ts'
import type { RunEvent } from '../kernel/run-event.ts'
import { isSupervisor, type SupervisorPart, type SupervisorState } from '../kernel/supervisor.ts'
import type { PromptValues } from '../prompts/render-prompt.ts'
import { historyOf, lockEarlier } from '../runs/continue-run.ts'
import { leave, runUnavailable } from '../runs/end.ts'
import { heedSwitches } from '../runs/heed-switches.ts'
import { append, type OwnedRun, RunLost } from '../runs/owned-run.ts'
import { ask, failRun, type NodeAsk, RunLeft } from './ask.ts'
import { type JudgedAnswer, judgeDecision } from './decision.ts'
import type { Nodes } from './graph.ts'
import { type FailedTwice, failedTwiceReason, findFailedTwice, roundsReason, tokensReason } from './rules.ts'
import { readSpecialistRun, readWork, type SpecialistRun, type SpecialistWork } from './specialist.ts'

/** The key of the question whose answer is the final text. */
const FINAL = 'final'

export function createNodes(ownedRunOf: (execution: string) => OwnedRun): Nodes {
  return {
    supervisor: async (execution, state) => decide(ownedRunOf(execution), state),
    specialist: async (execution, state, name) => runSpecialist(ownedRunOf(execution), state, name),
    finalizer: async (execution, state) => finish(ownedRunOf(execution), state),
    escalation: async (execution, state) => escalate(ownedRunOf(execution), state),
  }
}

async function decide(owned: OwnedRun, state: SupervisorState): Promise<SupervisorState> {
  const { state: run } = owned
  const { config } = partOf(owned)
  const tooLong = roundsReason(owned, state)
  if (tooLong) return escalated(state, tooLong)
  const failed = await findFailedTwice(owned, state)
  const judge = (answer: string): JudgedAnswer => judgeWithin(owned, state, answer, failed)
  const key = decisionKey(state.history.length, run.personAnswers.length)
  const asked: NodeAsk = {
    node: 'supervisor',
    key,
    name: 'supervisor_decision',
    promptId: config.supervisor.prompt_id,
    model: config.supervisor.model,
    values: valuesOf(owned, state),
    also: (answer) => {
      const judged = judge(answer)
      return judged.ok ? [updated('supervisor', judged.state)] : []
    },
  }
  let problem: string | undefined
  for (const question of [asked, { ...asked, key: `${key} again` }]) {
    // An answer on record was asked for within the limit.
    const tooMuch = run.nodeAnswers.has(question.key) ? null : await tokensReason(owned)
    if (tooMuch) return escalated(state, tooMuch)
    const judged = judge(await ask(owned, problem === undefined ? question : { ...question, problem }))
    if (judged.ok) return withinTokens(owned, judged.state)
    problem = judged.problem
  }
  return escalated(state, `The decision of the supervisor did not fit, twice: ${problem}`)
}

/** Judges the decision, and escalates in place of a delegation that has failed twice already. */
function judgeWithin(
  owned: OwnedRun,
  state: SupervisorState,
  answer: string,
  failed: FailedTwice | null,
): JudgedAnswer {
  const names = partOf(owned).config.specialists.map(({ name }) => name)
  const judged = judgeDecision(state, answer, names)
  if (!judged.ok || !failed || judged.state.active_agent !== failed.agent) return judged
  const instructions = instructionsIn(owned, answer, judged.state.plan, failed.agent)
  const isSame = instructions !== null && cleanText(instructions) === failed.instructions
  return isSame ? { ok: true, state: escalated(judged.state, failedTwiceReason(failed)) } : judged
}

/** A delegation that the tokens do not allow is not made. */
async function withinTokens(owned: OwnedRun, state: SupervisorState): Promise<SupervisorState> {
  if (state.active_agent === undefined) return state
  const tooMuch = await tokensReason(owned)
  return tooMuch ? escalated(state, tooMuch) : state
}

function escalated(state: SupervisorState, notes: string): SupervisorState {
  const { active_agent: _, ...rest } = state
  return { ...rest, status: 'ESCALATE', notes }
}

const decisionKey = (summaries: number, answers: number): string => `decision ${summaries} ${answers}`

/** The instructions of the newest decision for this specialist, and the number of answers before the decision. */
function instructionsOf(owned: OwnedRun, { history, plan }: Pick<SupervisorState, 'history' | 'plan'>, name: string) {
  const { personAnswers } = owned.state
  for (let answers = personAnswers.length; answers >= 0; answers--) {
    const key = decisionKey(history.length, answers)
    for (const text of decisionsAt(owned, key)) {
      const instructions = instructionsIn(owned, text, plan, name)
      if (instructions !== null) return { key, instructions, answers }
    }
  }
  throw new Error(`there are no instructions for ${name}`)
}

/** The answers to the question with this key, the newest first. */
const decisionsAt = ({ state }: OwnedRun, key: string): string[] =>
  [`${key} again`, key].flatMap((each) => state.nodeAnswers.get(each) ?? [])

/** The instructions that a decision gives this specialist; null if it gives it none. */
function instructionsIn({ state }: OwnedRun, text: string, plan: SupervisorState['plan'], name: string): string | null {
  const read = readDecision('supervisor_decision', text)
  if (!read.ok || read.decision.agent !== name) return null
  const own = plan.filter((toDo) => toDo.owner_agent === name && toDo.status !== 'DONE')
  const instructions = read.decision.instructions?.trim() || own.map((toDo) => toDo.description).join('\n')
  return instructions || taskOf(state)
}

async function runSpecialist(
  owned: OwnedRun,
  state: Pick<SupervisorState, 'plan' | 'history'>,
  name: string,
): Promise<SpecialistWork | null> {
  const { deps, run } = owned
  const { key, instructions, answers } = instructionsOf(owned, state, name)
  /** The number of times people continued the run since the specialist got its instructions. */
  const continued = owned.state.personAnswers.length - answers
  let earlier: string | null = null
  for (let attempt = 1; ; attempt++) {
    const id = idFrom(`${run.id} ${key} ${attempt}`)
    const child = await readSpecialistRun(deps.pool, id)
    if (child?.has_ended && isAway(child)) {
      earlier = id
      if (attempt <= continued) continue
      await leave(owned, runUnavailable(owned, child.error_message ?? 'A model is unavailable.'))
      throw new RunLeft()
    }
    // No decision of the supervisor could bring the missing prompt back.
    if (child?.error_code === 'PROMPT_MISSING') {
      throw await failRun(owned, child.error_code, child.error_message ?? 'A prompt is missing.')
    }
    if (child?.has_ended) return takeWork(owned, state, child, name)
    if (!child) await start(owned, state, { id, name, instructions, earlier })
    return null
  }
}

const isAway = ({ pause_reason: reason }: SpecialistRun): boolean => reason === 'unavailable'

async function takeWork(
  owned: OwnedRun,
  { plan }: Pick<SupervisorState, 'plan'>,
  child: SpecialistRun,
  name: string,
): Promise<SpecialistWork> {
  const done = await readWork(owned.deps.pool, child, name)
  await append(owned, [updated(name, { status: 'RUNNING', plan })])
  return done
}

/** `earlier`: the attempt that ended without its model. The new run continues its history, so no finished call is repeated. */
async function start(
  owned: OwnedRun,
  state: Pick<SupervisorState, 'plan' | 'history'>,
  { id, name, instructions, earlier }: { id: string; name: string; instructions: string; earlier: string | null },
): Promise<void> {
  const { deps, run, settings } = owned
  if ((await heedSwitches(owned)) === 'left') throw new RunLeft()
  const part = partOf(owned)
  const config = part.config.specialists.find((each) => each.name === name)
  if (!config) throw new Error(`${name} is no specialist of this run`)
  const { PLAN_JSON = '', HISTORY_JSON = '', CONTEXT_METADATA = '' } = valuesOf(owned, state)
  const fresh: NewRun = {
    id,
    projectId: run.project_id,
    agentId: null,
    part: { variant: part.variant, node: name, config, values: { PLAN_JSON, HISTORY_JSON, CONTEXT_METADATA } },
    trigger: { ...run.trigger, node: name, parent_run_id: run.id },
    input: cleanText(instructions),
    maxSteps: settings.subagent_max_steps,
    timeoutMs: null,
    ...placeBelow(run),
    chainDepth: run.chain_depth,
  }
  const isSpawned = await spawnRun(
    deps.pool,
    { id: run.id, fence: run.fence },
    earlier === null ? fresh : (tx) => continuing(tx, fresh, earlier),
  )
  await fault('spawn.after_insert')
  if (isSpawned) return deps.onReady()
  // The run was cancelled or another process claimed it; the switches say which.
  if ((await heedSwitches(owned)) === 'left') throw new RunLeft()
  throw new RunLost('a specialist could not be started')
}

/** The history has the instructions already. */
async function continuing(tx: Db, fresh: NewRun, earlierId: string): Promise<NewRun> {
  const earlier = await lockEarlier(tx, fresh.projectId, earlierId)
  if (!earlier) throw new Error('the earlier run of a specialist is gone')
  const trigger = { ...fresh.trigger, resumed_from: earlierId }
  return { ...fresh, ...historyOf(earlier), trigger, input: null, rights: earlier.rights }
}

async function finish(owned: OwnedRun, state: SupervisorState): Promise<void> {
  const { finalizer } = partOf(owned).config
  if (owned.state.nodeAnswers.has(FINAL)) return
  await append(owned, [entered(owned, 'finalizer')])
  const values = valuesOf(owned, state)
  await ask(owned, {
    node: 'finalizer',
    key: FINAL,
    name: null,
    promptId: finalizer.prompt_id,
    model: finalizer.model,
    values,
  })
}

async function escalate(owned: OwnedRun, state: SupervisorState): Promise<void> {
  const { escalation } = partOf(owned).config
  const key = questionKey(owned)
  if (isAsked(owned)) return
  await append(owned, [entered(owned, 'hitl_escalation')])
  const values = valuesOf(owned, state, ruleReason(owned, state) ?? undefined)
  await ask(owned, {
    node: 'hitl_escalation',
    key,
    name: null,
    promptId: escalation.prompt_id,
    model: escalation.model,
    values,
  })
}

const questionKey = ({ state }: OwnedRun): string => `question ${state.personAnswers.length}`

/** True if the question to people was written after their last answer. */
export const isAsked = (owned: OwnedRun): boolean => owned.state.nodeAnswers.has(questionKey(owned))

export const finalText = ({ state }: OwnedRun): string => state.nodeAnswers.get(FINAL) ?? ''

/** The question to people. If a rule escalated and not the supervisor, the reason comes first. */
export function questionText(owned: OwnedRun, state: SupervisorState): string {
  const question = owned.state.nodeAnswers.get(questionKey(owned)) ?? ''
  const reason = ruleReason(owned, state)
  return reason === null ? question : `${reason}\n\n${question}`
}

/** The reason of an escalation that the supervisor did not decide itself, else null. */
function ruleReason(owned: OwnedRun, { history, notes }: SupervisorState): string | null {
  const [newest] = decisionsAt(owned, decisionKey(history.length, owned.state.personAnswers.length))
  const read = newest === undefined ? null : readDecision('supervisor_decision', newest)
  return read?.ok && read.decision.action === 'escalate' ? null : (notes ?? null)
}

const entered = ({ state }: OwnedRun, node: string): RunEvent => ({
  kind: 'node.entered',
  data: { node, step: state.steps + 1 },
})

const updated = (
  node: string,
  { status, active_agent: agent, plan }: Pick<SupervisorState, 'status' | 'active_agent' | 'plan'>,
): RunEvent => ({ kind: 'supervisor.updated', data: { node, status, active_agent: agent ?? null, plan } })

export function partOf({ run }: OwnedRun): SupervisorPart {
  if (!isSupervisor(run.part)) throw new Error('this run does not belong to a supervisor')
  return run.part
}

/** The task with the later answers of people. A run that was continued without an answer has only its task. */
function taskOf({ task, personAnswers }: OwnedRun['state']): string {
  const answered = personAnswers.filter(({ taskId }) => taskId !== null)
  const added = personAnswers.filter(({ taskId, answer }) => taskId === null && answer !== '' && answer !== task)
  const listed = (title: string, said: typeof personAnswers): string[] =>
    said.length === 0 ? [] : [`${title}\n${said.map(({ answer }) => `- ${answer}`).join('\n')}`]
  return [
    task,
    ...listed('A person added:', added),
    ...listed('A person was asked meanwhile, and answered:', answered),
  ].join('\n\n')
}

function descriptionsOf(specialists: SupervisorPart['config']['specialists']) {
  const described = specialists.flatMap(({ name, description }) => (description ? [[name, description] as const] : []))
  return described.length === 0 ? {} : { specialist_descriptions: Object.fromEntries(described) }
}

/** `reason` says why people are asked. */
function valuesOf(
  owned: OwnedRun,
  { plan, history }: Pick<SupervisorState, 'plan' | 'history'>,
  reason?: string,
): PromptValues {
  const { config, context } = partOf(owned)
  const { context_id: contextId, metadata } = context
  return {
    USER_INPUT: taskOf(owned.state),
    PLAN_JSON: JSON.stringify(plan),
    HISTORY_JSON: JSON.stringify(history),
    CONTEXT_METADATA: JSON.stringify({
      ...metadata,
      ...(contextId === null ? {} : { context_id: contextId }),
      specialists: config.specialists.map(({ name }) => name),
      ...descriptionsOf(config.specialists),
      ...(reason === undefined ? {} : { reason }),
    }),
  }
}
