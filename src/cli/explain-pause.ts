// A run that stopped, in plain words: the reason, and the command that resolves it.
import { hasEnded } from '../kernel/run.ts'
import { awaitedBy, type StopAction, whyStopped } from '../kernel/why-stopped.ts'
import { type AgentAnswer, projectAnswer, type RunAnswer, readList, type TaskAnswer, taskAnswer } from './answers.ts'
import type { CommandContext } from './command.ts'
import { clockTime } from './durations.ts'
import { answersTo } from './open-tasks.ts'
import { type StyledText, styled } from './screen.ts'
import { shortId } from './short-id.ts'
import { visibleLine } from './visible-text.ts'
import { wordFor } from './word-for.ts'
import type { Workplace } from './workplace.ts'

export interface Explanation {
  /** Why the run stopped, in one sentence. */
  why: string
  /** The question of the run, if it asks one. */
  question?: string
  /** Commands, each of which is a way on. */
  next: readonly string[]
  /** True if the same run continues by itself or by an answer. */
  isWait?: boolean
}

const MOST_TASKS = 1_000

export async function explainPause(
  context: CommandContext,
  workplace: Workplace,
  run: RunAnswer,
): Promise<Explanation> {
  const reason = run.pause_reason
  const asksPeople = reason === 'human' || reason === 'outcome_unknown'
  const { task } = asksPeople ? await findQuestion(context, workplace, run) : { task: null }
  const agent = (await workplace.agents()).find(({ id }) => id === run.agent_id) ?? null
  const explained = explainStopped({ run, task, agent })
  return { ...explained, isWait: run.is_wait ?? !hasEnded(run), next: explained.next.map(workplace.command) }
}

/** The open question of a run. `isSure` says that all open questions were looked at. */
async function findQuestion(
  { client }: CommandContext,
  { path }: Workplace,
  run: RunAnswer,
): Promise<{ task: TaskAnswer | null; isSure: boolean }> {
  const query = { kind: run.waiting_for === 'approval' ? 'suggestion' : 'escalation', status: 'pending' }
  const { items, isCut } = await readList(client, path('tasks'), taskAnswer, { query, most: MOST_TASKS })
  return { task: items.find(({ run_id: runId }) => runId === run.id) ?? null, isSure: !isCut }
}

/** True if the reason of the pause is gone already: the run goes on as soon as a worker takes it. */
export async function isAboutToGoOn(context: CommandContext, workplace: Workplace, run: RunAnswer): Promise<boolean> {
  if (run.status !== 'paused' || hasEnded(run)) return false
  if (run.pause_reason === 'halted') {
    const project = await context.client.ask(`/api/projects/${workplace.project.id}`, projectAnswer)
    return project.halted_at === null
  }
  // The run tries its provider again by itself.
  if (run.is_wait && run.waiting_for?.startsWith('provider ')) return true
  if (run.pause_reason !== 'human') return false
  const { task, isSure } = await findQuestion(context, workplace, run)
  return task === null && isSure
}

interface Facts {
  run: Pick<RunAnswer, 'id' | 'agent_id' | 'status' | 'trigger' | 'pause_reason' | 'error_code' | 'completed_at'> &
    Partial<Pick<RunAnswer, 'step_count' | 'max_steps' | 'resumed_as' | 'waiting_for' | 'wait_message' | 'next_try_at'>>
  task: Pick<TaskAnswer, 'id' | 'title' | 'metadata'> | null
  agent: Pick<AgentAnswer, 'id' | 'name'> | null
}

export function explainStopped({ run, task, agent }: Facts): Explanation {
  const { step_count = 0, max_steps = null, resumed_as = null, waiting_for = null, wait_message = null } = run
  const stop = whyStopped({ ...run, step_count, max_steps, resumed_as, waiting_for, wait_message }, 'It')
  const id = shortId(run.id)
  if (stop === null) return { why: 'It has not stopped.', next: [`muster follow ${id}`] }
  const why = run.next_try_at ? `${stop.why} Next try: ${clockTime(run.next_try_at)}.` : stop.why
  return { why, ...(task ? { question: task.title } : {}), next: waysOn(stop.action, { run, task, agent }, resumed_as) }
}

/** The commands for an action, each of which is a way on. */
function waysOn(action: StopAction | null, { run, task, agent }: Facts, resumedAs: string | null): string[] {
  const id = shortId(run.id)
  const resume = `muster resume ${id}`
  const who = agent ? wordFor(agent) : 'AGENT'
  switch (action) {
    case 'answer':
      return task ? answersTo(task, shortId(task.id)) : ['muster inbox']
    case 'approve':
      return task ? [`muster approve ${shortId(task.id)}`, `muster reject ${shortId(task.id)}`] : ['muster inbox']
    case 'decide_outcome':
      return [`${resume} --outcome done`, `${resume} --outcome not_done`]
    case 'resume':
    case 'resume_task':
      if (run.pause_reason === 'step_limit') return [`${resume} --max-steps 20`]
      return [run.pause_reason === 'timeout' ? `${resume} --timeout 120000` : resume]
    case 'resume_flow':
      return [`muster resume ${shortId(run.trigger.flow_run_id ?? run.id)}`]
    case 'open_continuation':
      return [`muster follow ${shortId(resumedAs ?? run.id)}`]
    case 'try_now':
      return [`muster try-now ${id}`]
    case 'top_up':
      return [`muster top-up ${who} 10000`, resume]
    case 'unhalt':
      return ['muster unhalt']
    case 'start_agent':
      return [`muster api POST agents/@${who}/start`]
    case null:
      return [`muster follow ${id}`]
  }
}

export function explanationLines({ why, question, next, isWait = false }: Explanation): StyledText[][] {
  return [
    [styled('yellow', isWait ? 'Waiting. ' : 'Paused. '), why],
    ...(question === undefined ? [] : [[styled('bold', visibleLine(question))]]),
    ...next.map((command, place) => [place === 0 ? 'Next: ' : '  or: ', styled('cyan', command)]),
  ]
}

/** "waits for provider openai, next try 12:03:20: Slow down." Null for a run that waits for nothing that has a name. */
export function waitText({ waiting_for: awaited, wait_message: message, next_try_at: at }: Waiting): string | null {
  if (!awaited) return null
  // The provider has been named already.
  const name = awaitedBy({ waiting_for: awaited })?.name
  const words = message?.startsWith(`${name} `) ? `it${message.slice(`${name}`.length)}` : message
  return `waits for ${awaited}${at ? `, next try ${clockTime(at)}` : ''}${words ? `: ${words}` : ''}`
}

type Waiting = Partial<Pick<RunAnswer, 'waiting_for' | 'wait_message' | 'next_try_at'>>
