// The work of the nodes of a supervisor's graph. Each is a function of the graph's state and of what the journal of the
// run holds: executed again after a crash, it asks nothing twice and starts nothing twice.

import { cleanText } from '../journal/clean-json.ts'
import { spawnRun } from '../journal/spawn-run.ts'
import { readDecision } from '../kernel/decision.ts'
import { fault } from '../kernel/fault.ts'
import { idFrom } from '../kernel/id.ts'
import type { RunEvent } from '../kernel/run-event.ts'
import { isSupervisor, type SupervisorPart, type SupervisorState } from '../kernel/supervisor.ts'
import type { PromptValues } from '../prompts/render-prompt.ts'
import { unavailable } from '../runs/end.ts'
import { heedSwitches } from '../runs/execute-run.ts'
import { leave } from '../runs/model-step.ts'
import { append, RunLost, type Session } from '../runs/session.ts'
import { ask, failRun, type NodeAsk, RunLeft } from './ask.ts'
import { judgeDecision } from './decision.ts'
import type { Nodes } from './graph.ts'
import { readSpecialistRun, readWork, type SpecialistRun, type SpecialistWork } from './specialist.ts'

/** The key of the question whose answer is the final text. */
const FINAL = 'final'

export function createNodes(sessionOf: (execution: string) => Session): Nodes {
  return {
    supervisor: async (execution, state) => decide(sessionOf(execution), state),
    specialist: async (execution, state, name) => runSpecialist(sessionOf(execution), state, name),
    finalizer: async (execution, state) => finish(sessionOf(execution), state),
    escalation: async (execution, state) => escalate(sessionOf(execution), state),
  }
}

async function decide(session: Session, state: SupervisorState): Promise<SupervisorState> {
  const { settings, state: run } = session
  const { config } = partOf(session)
  const names = config.specialists.map(({ name }) => name)
  const since = run.personAnswers.at(-1)?.summaries ?? 0
  if (state.history.length - since >= settings.supervisor_max_rounds) {
    return escalated(state, `The task took ${settings.supervisor_max_rounds} rounds and is not done.`)
  }
  const key = decisionKey(state.history.length, run.personAnswers.length)
  const asked: NodeAsk = {
    ...{ node: 'supervisor', key, name: 'supervisor_decision' },
    ...{ promptId: config.supervisor.prompt_id, model: config.supervisor.model, values: valuesOf(session, state) },
    also: (answer) => {
      const judged = judgeDecision(state, answer, names)
      return judged.ok ? [updated('supervisor', judged.state)] : []
    },
  }
  const first = judgeDecision(state, await ask(session, asked), names)
  if (first.ok) return first.state
  const again = { ...asked, key: `${key} again`, problem: first.problem }
  const second = judgeDecision(state, await ask(session, again), names)
  return second.ok
    ? second.state
    : escalated(state, `The decision of the supervisor did not fit, twice: ${second.problem}`)
}

/** The state in which people are asked. */
function escalated(state: SupervisorState, notes: string): SupervisorState {
  const { active_agent: _, ...rest } = state
  return { ...rest, status: 'ESCALATE', notes }
}

const decisionKey = (summaries: number, answers: number): string => `decision ${summaries} ${answers}`

/** The instructions that the newest decision gave this specialist, and the number of answers of people before it. */
function instructionsOf(
  { state }: Session,
  { history, plan }: Pick<SupervisorState, 'history' | 'plan'>,
  name: string,
) {
  for (let answers = state.personAnswers.length; answers >= 0; answers--) {
    const key = decisionKey(history.length, answers)
    for (const text of [state.nodeAnswers.get(`${key} again`), state.nodeAnswers.get(key)]) {
      const read = text === undefined ? null : readDecision('supervisor_decision', text)
      if (!read?.ok || read.decision.agent !== name) continue
      const own = plan.filter((toDo) => toDo.owner_agent === name && toDo.status !== 'DONE')
      const instructions = read.decision.instructions?.trim() || own.map((toDo) => toDo.description).join('\n')
      return { key, instructions: instructions || taskOf(state), answers }
    }
  }
  throw new Error(`nobody told ${name} what to do`)
}

async function runSpecialist(
  session: Session,
  state: Pick<SupervisorState, 'plan' | 'history'>,
  name: string,
): Promise<SpecialistWork | null> {
  const { deps, run } = session
  const { key, instructions, answers } = instructionsOf(session, state, name)
  /** People let the run go on so many times since its specialist was told what to do. */
  const continued = session.state.personAnswers.length - answers
  for (let attempt = 1; ; attempt++) {
    const id = idFrom(`${run.id} ${key} ${attempt}`)
    const child = await readSpecialistRun(deps.pool, id)
    if (child?.has_ended && isAway(child)) {
      if (attempt <= continued) continue
      await leave(session, unavailable(session, child.error_message ?? 'A model is unavailable.'))
      throw new RunLeft()
    }
    // Nothing that the supervisor could decide would bring the prompt back.
    if (child?.error_code === 'PROMPT_MISSING') {
      throw await failRun(session, child.error_code, child.error_message ?? 'A prompt is missing.')
    }
    if (child?.has_ended) return takeWork(session, state, child, name)
    if (!child) await start(session, state, { id, name, instructions })
    return null
  }
}

const isAway = ({ pause_reason: reason }: SpecialistRun): boolean => reason === 'unavailable'

async function takeWork(
  session: Session,
  { plan }: Pick<SupervisorState, 'plan'>,
  child: SpecialistRun,
  name: string,
): Promise<SpecialistWork> {
  const done = await readWork(session.deps.pool, child, name)
  await append(session, [updated(name, { status: 'RUNNING', plan })])
  return done
}

async function start(
  session: Session,
  state: Pick<SupervisorState, 'plan' | 'history'>,
  { id, name, instructions }: { id: string; name: string; instructions: string },
): Promise<void> {
  const { deps, run, settings } = session
  if ((await heedSwitches(session)) === 'left') throw new RunLeft()
  const part = partOf(session)
  const config = part.config.specialists.find((each) => each.name === name)
  if (!config) throw new Error(`${name} is no specialist of this run`)
  const { PLAN_JSON = '', HISTORY_JSON = '', CONTEXT_METADATA = '' } = valuesOf(session, state)
  const isSpawned = await spawnRun(
    deps.pool,
    { id: run.id, fence: run.fence },
    {
      id,
      projectId: run.project_id,
      agentId: null,
      part: { variant: part.variant, node: name, config, values: { PLAN_JSON, HISTORY_JSON, CONTEXT_METADATA } },
      trigger: { ...run.trigger, node: name, parent_run_id: run.id },
      input: cleanText(instructions),
      maxSteps: settings.subagent_max_steps,
      timeoutMs: null,
      parentRunId: run.id,
      ancestors: [...run.ancestors, run.id],
      chainDepth: run.chain_depth,
    },
  )
  await fault('spawn.after_insert')
  if (isSpawned) return deps.onReady()
  // Cancelled or taken over: the switches say which.
  if ((await heedSwitches(session)) === 'left') throw new RunLeft()
  throw new RunLost('a specialist could not be started')
}

async function finish(session: Session, state: SupervisorState): Promise<void> {
  const { finalizer } = partOf(session).config
  if (session.state.nodeAnswers.has(FINAL)) return
  await append(session, [entered(session, 'finalizer')])
  const values = valuesOf(session, state)
  await ask(session, {
    node: 'finalizer',
    key: FINAL,
    name: null,
    promptId: finalizer.prompt_id,
    model: finalizer.model,
    values,
  })
}

async function escalate(session: Session, state: SupervisorState): Promise<void> {
  const { escalation } = partOf(session).config
  const key = questionKey(session)
  if (isAsked(session)) return
  await append(session, [entered(session, 'hitl_escalation')])
  const values = valuesOf(session, state)
  await ask(session, {
    node: 'hitl_escalation',
    key,
    name: null,
    promptId: escalation.prompt_id,
    model: escalation.model,
    values,
  })
}

const questionKey = ({ state }: Session): string => `question ${state.personAnswers.length}`

/** Tells whether the question to people was written since they last answered. */
export const isAsked = (session: Session): boolean => session.state.nodeAnswers.has(questionKey(session))

/** The text that the finalizer wrote. */
export const finalText = ({ state }: Session): string => state.nodeAnswers.get(FINAL) ?? ''

/** The question that people are asked. */
export const questionText = (session: Session): string => session.state.nodeAnswers.get(questionKey(session)) ?? ''

const entered = ({ state }: Session, node: string): RunEvent => ({
  kind: 'node.entered',
  data: { node, step: state.steps + 1 },
})

const updated = (
  node: string,
  { status, active_agent: agent, plan }: Pick<SupervisorState, 'status' | 'active_agent' | 'plan'>,
): RunEvent => ({ kind: 'supervisor.updated', data: { node, status, active_agent: agent ?? null, plan } })

export function partOf({ run }: Session): SupervisorPart {
  if (!isSupervisor(run.part)) throw new Error('this run is no supervisor’s')
  return run.part
}

/** The task, and what people have said since. A run that only goes on with its task was told nothing new. */
function taskOf({ task, personAnswers }: Session['state']): string {
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

function valuesOf(session: Session, { plan, history }: Pick<SupervisorState, 'plan' | 'history'>): PromptValues {
  const { config, context } = partOf(session)
  const { context_id: contextId, metadata } = context
  return {
    USER_INPUT: taskOf(session.state),
    PLAN_JSON: JSON.stringify(plan),
    HISTORY_JSON: JSON.stringify(history),
    CONTEXT_METADATA: JSON.stringify({
      ...metadata,
      ...(contextId === null ? {} : { context_id: contextId }),
      specialists: config.specialists.map(({ name }) => name),
      ...descriptionsOf(config.specialists),
    }),
  }
}
