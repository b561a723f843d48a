// The decisions with which an agent begins a task: whether a subordinate does it, and whether it is split. The model
// decides, code checks. Decisions of the same moment take effect in one transaction, with their journal.
import { createBatches } from '../db/batches.ts'
import type { Pool } from '../db/pool.ts'
import type { Appended, Journal } from '../journal/journal.ts'
import type { Log } from '../kernel/log.ts'
import { noteOperation } from '../kernel/operation.ts'
import type { OpeningStep } from '../kernel/run-event.ts'
import type { Opening, OpeningReply } from '../runs/owned-run.ts'
import { type AskedDesk, lockDesks, readDesks } from './desk.ts'
import { type Judged, judge, judgeAlone } from './judge.ts'
import { delegationQuestion, planQuestion } from './questions.ts'
import { addSubtasks, type Split } from './subtasks.ts'

/** A task this many levels below the first task is not split again. */
const DEEPEST_PLAN = 3
/** After an answer that does not fit, the model is asked once more. */
const MOST_MISFITS = 1

interface Decided {
  step: OpeningStep
  appended: Appended
}

export function createOpening({ pool, journal, log }: { pool: Pool; journal: Journal; log: Log }): Opening {
  const read = createBatches((asked: readonly AskedDesk[]) => readDesks(pool, asked))
  const commit = createBatches(commitTogether)

  return {
    ask: async (run, agent, last) => {
      const isSenior = run.has_subordinates
      const desk = run.task_id === null ? null : await read({ taskId: run.task_id, isSenior })
      if (!desk) return null
      const { task, subordinates, matcher } = desk
      if (task.is_decided || task.attempt_run_id !== run.id) return null
      const isFirst = last === null || (last.name === 'delegation_decision' && last.next === 'again')
      if (isFirst && subordinates.length > 0) {
        return {
          name: 'delegation_decision',
          text: delegationQuestion(task, subordinates, matcher),
          rootTaskId: task.root_task_id,
        }
      }
      if (task.plan_depth >= DEEPEST_PLAN) return null
      return { name: 'task_plan', text: planQuestion(task, [...subordinates, agent]), rootTaskId: task.root_task_id }
    },
    decide: async (reply) => {
      const alone = judgeAlone(reply.question.name, reply.answer)
      const decided = alone ? await appendOnly(reply, stepAfter(reply, alone)) : await commit(reply)
      noteDecision(reply, decided.step)
      return decided
    },
  }

  function noteDecision({ run, question }: OpeningReply, { name, next }: OpeningStep): void {
    const { id, agent_id, task_id, project_id } = run
    const about = { project_id, agent_id, task_id, run_id: id, correlation_id: question.rootTaskId }
    const taken = name === 'delegation_decision' ? 'task.delegated' : 'task.split'
    noteOperation(log, next === 'done' ? taken : 'task.decided', about, { decision: name, next })
  }

  /** A decision that gives nobody work changes no task. */
  async function appendOnly(reply: OpeningReply, step: OpeningStep): Promise<Decided> {
    return { step, appended: await journal.append(reply.entryFor(step)) }
  }

  async function commitTogether(replies: readonly OpeningReply[]): Promise<Decided[]> {
    let steps: OpeningStep[] = []
    const appended = await journal.appendAllAfter(pool, async (tx) => {
      const taskIds = replies.map(({ run }) => run.task_id ?? '')
      const desks = await lockDesks(tx, taskIds)
      const splits: Split[] = []
      steps = replies.map((reply) => {
        const { run, question } = reply
        const desk = desks.get(run.task_id ?? '')
        if (desk?.task.attempt_run_id !== run.id || desk.task.status !== 'in-progress') {
          return { name: question.name, next: 'work', note: 'The task no longer belongs to this run.' }
        }
        const judged = judge(question.name, reply.answer, desk)
        if ('subtasks' in judged && judged.subtasks.length > 0) {
          splits.push({ parent: desk.task, subtasks: judged.subtasks })
          countLoad(desks.values(), judged.subtasks)
        }
        return stepAfter(reply, judged)
      })
      await addSubtasks(tx, log, splits)
      return replies.map((reply, place) => reply.entryFor(steps[place] ?? unreachable()))
    })
    return appended.map((answer, place) => ({ step: steps[place] ?? unreachable(), appended: answer }))
  }
}

/** A task that is given to an agent now counts as load in the choices after it. */
function countLoad(
  desks: Iterable<{ subordinates: { id: string; load: number }[] }>,
  subtasks: readonly { assignedTo: string }[],
): void {
  const given = new Map<string, number>()
  for (const { assignedTo: id } of subtasks) given.set(id, (given.get(id) ?? 0) + 1)
  // All tasks of one senior share the same list of subordinates.
  const all = new Set([...desks].flatMap(({ subordinates }) => subordinates))
  for (const subordinate of all) subordinate.load += given.get(subordinate.id) ?? 0
}

function stepAfter({ question: { name }, misfits }: OpeningReply, judged: Judged): OpeningStep {
  const isDelegation = name === 'delegation_decision'
  // The agent does the task itself if no answer fits.
  const otherwise = isDelegation ? 'ask' : 'work'
  if ('problem' in judged) {
    return { name, next: misfits >= MOST_MISFITS ? otherwise : 'again', note: judged.problem, is_misfit: true }
  }
  return { name, next: judged.subtasks.length > 0 ? 'done' : otherwise, note: judged.note }
}

function unreachable(): never {
  throw new Error('a decision has no step')
}
