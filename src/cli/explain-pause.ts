// A paused run in plain words: the reason, and the command that resolves it.
import { hasEnded, type PauseReason } from '../kernel/run.ts'
import { type AgentAnswer, projectAnswer, type RunAnswer, readList, type TaskAnswer, taskAnswer } from './answers.ts'
import type { CommandContext } from './command.ts'
import { type StyledText, styled } from './screen.ts'
import { shortId } from './short-id.ts'
import { visibleLine } from './visible-text.ts'
import type { Workplace } from './workplace.ts'

export interface Explanation {
  /** Why the run stopped, in one sentence. */
  why: string
  /** The question of the run, if it asks one. */
  question?: string
  /** Commands, each of which is a way on. */
  next: readonly string[]
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
  return explainReason(reason, { run, task, agent })
}

/** The open question of a run. `isSure` says that all open questions were looked at. */
async function findQuestion(
  { client }: CommandContext,
  { path }: Workplace,
  run: RunAnswer,
): Promise<{ task: TaskAnswer | null; isSure: boolean }> {
  const query = { kind: 'escalation', status: 'pending' }
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
  if (run.pause_reason !== 'human') return false
  const { task, isSure } = await findQuestion(context, workplace, run)
  return task === null && isSure
}

interface Facts {
  run: Pick<RunAnswer, 'id'>
  task: Pick<TaskAnswer, 'id' | 'title'> | null
  agent: Pick<AgentAnswer, 'id' | 'name'> | null
}

export function explainReason(reason: PauseReason | null, { run, task, agent }: Facts): Explanation {
  const id = shortId(run.id)
  const resume = `muster resume ${id}`
  const who = agent ? wordFor(agent) : 'AGENT'
  switch (reason) {
    case 'human':
      return task
        ? {
            why: 'It waits for the answer of a person.',
            question: task.title,
            next: [`muster answer ${shortId(task.id)} "…"`],
          }
        : { why: 'It waits for the answer of a person.', next: ['muster inbox'] }
    case 'outcome_unknown':
      return {
        why: 'A tool was called, and nobody knows whether the call took effect. Look, then say it.',
        ...(task ? { question: task.title } : {}),
        next: [`${resume} --outcome done`, `${resume} --outcome not_done`],
      }
    case 'step_limit':
      return { why: 'It has used up its steps.', next: [`${resume} --max-steps 20`] }
    case 'timeout':
      return { why: 'Its time is over.', next: [`${resume} --timeout 120000`] }
    case 'context':
      return { why: 'Its conversation is too long for the model.', next: [resume] }
    case 'budget':
      return {
        why: 'The tokens of its agent, or of the month, are used up.',
        next: [`muster top-up ${who} 10000`, resume],
      }
    case 'halted':
      return { why: 'The project is halted.', next: ['muster unhalt'] }
    case 'stopped':
      return { why: 'Its agent was stopped.', next: [`muster api POST agents/@${who}/start`] }
    case 'unavailable':
      return { why: 'A model or the prompt library did not answer.', next: [resume] }
    case null:
      return { why: 'It waits.', next: [`muster follow ${id}`] }
  }
}

/** A word that a shell takes as it is. A name of other letters could do something when it is pasted, so its id stands. */
export const wordFor = ({ id, name }: { id: string; name: string }): string =>
  /^\w[\w.-]*$/.test(name) ? name : shortId(id)

export function explanationLines({ why, question, next }: Explanation): StyledText[][] {
  return [
    [styled('yellow', 'Paused. '), why],
    ...(question === undefined ? [] : [[styled('bold', visibleLine(question))]]),
    ...next.map((command, place) => [place === 0 ? 'Next: ' : '  or: ', styled('cyan', command)]),
  ]
}
