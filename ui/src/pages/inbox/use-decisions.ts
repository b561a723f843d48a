// Decides about things of the inbox. A refusal is told at the thing itself, and what somebody else decided is read.
import { useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { errorText } from '../../../../src/kernel/error-text.ts'
import type { Task } from '../../../../src/kernel/task.ts'
import { ApiError, patch, post } from '../../api/client.ts'
import { readTasksAgain, taskQuery } from '../../api/inbox.ts'
import { projectPath } from '../../api/queries.ts'
import { isTaskOver, suggestedCall } from '../../api/task-words.ts'

interface BulkAnswer {
  results: { id: string; ok: boolean; error?: { code: string; message: string } }[]
}

interface State {
  busy: ReadonlySet<string>
  problems: ReadonlyMap<string, string>
  /** The ids that were decided on this page. */
  settled: ReadonlySet<string>
  /** For people who listen: the last thing that happened. */
  said: string
}

const NOTHING: State = { busy: new Set(), problems: new Map(), settled: new Set(), said: '' }
/** The API takes as many at once. */
const MOST_AT_ONCE = 200

export type Decisions = ReturnType<typeof useDecisions>

export function useDecisions(projectId: string) {
  const client = useQueryClient()
  const [state, setState] = useState(NOTHING)
  const path = (rest: string): string => projectPath(projectId, `/tasks${rest}`)

  const begin = (ids: readonly string[]): void =>
    setState((now) => ({
      ...now,
      busy: new Set([...now.busy, ...ids]),
      problems: new Map([...now.problems].filter(([id]) => !ids.includes(id))),
    }))
  const end = (ids: readonly string[], done: readonly string[], refused: [string, string][], said: string): void =>
    setState((now) => ({
      busy: new Set([...now.busy].filter((id) => !ids.includes(id))),
      problems: new Map([...now.problems, ...refused]),
      settled: new Set([...now.settled, ...done]),
      said,
    }))

  /** Keeps the answer to a decision, so that its place says what became of it. */
  const note = (task: Task): void => void client.setQueryData(taskQuery(projectId, task.id).queryKey, task)
  /** Somebody else may have decided, or the object may have moved on. */
  const readAgain = async (id: string): Promise<string[]> => {
    const task = await client.fetchQuery({ ...taskQuery(projectId, id), staleTime: 0 }).catch(() => null)
    return task && isTaskOver(task) ? [id] : []
  }

  const decide = async ({ id }: Task, work: () => Promise<unknown>, said: string): Promise<boolean> => {
    begin([id])
    try {
      const answer = await work()
      if (isTask(answer, id)) note(answer)
      else await readAgain(id)
      end([id], [id], [], said)
      return true
    } catch (error) {
      const text = errorText(error)
      const isMoved = error instanceof ApiError && (error.status === 409 || error.status === 404)
      end([id], isMoved ? await readAgain(id) : [], [[id, text]], text)
      return false
    } finally {
      void readTasksAgain(projectId)
    }
  }

  const approveMany = async (tasks: readonly Task[]): Promise<void> => {
    const chosen = tasks.slice(0, MOST_AT_ONCE)
    const ids = chosen.map(({ id }) => id)
    begin(ids)
    try {
      const { results } = await post<BulkAnswer>(path('/approve'), { ids }, { patienceMs: 60_000 })
      const refused = results.filter(({ ok }) => !ok)
      const done = chosen.filter(({ id }) => results.some((each) => each.id === id && each.ok))
      for (const task of done) note({ ...task, status: 'completed' })
      const decidedElsewhere = (await Promise.all(refused.map(({ id }) => readAgain(id)))).flat()
      end(
        ids,
        [...done.map(({ id }) => id), ...decidedElsewhere],
        refused.map(({ id, error }) => [id, error?.message ?? 'It could not be approved.']),
        `${done.length} approved, ${refused.length} could not be.`,
      )
    } catch (error) {
      const text = errorText(error)
      end(
        ids,
        [],
        ids.map((id) => [id, text]),
        text,
      )
    } finally {
      void readTasksAgain(projectId)
    }
  }

  return {
    ...state,
    approveMany,
    approve: (task: Task) =>
      decide(
        task,
        () => post<Task>(path(`/${task.id}/approve`)),
        `Approved: ${task.title}. ${suggestedCall(task) ? 'The run makes the call.' : 'The change is made.'}`,
      ),
    reject: (task: Task, reason: string) =>
      decide(
        task,
        () => post<Task>(path(`/${task.id}/reject`), reason.trim() === '' ? {} : { reason }),
        `Rejected: ${task.title}.`,
      ),
    settle: (task: Task, change: { status: 'completed' | 'cancelled'; result?: unknown }, said: string) =>
      decide(task, () => patch<Task>(path(`/${task.id}`), change), said),
    topUp: (task: Task, agentId: string, add: number) =>
      decide(
        task,
        () => post(projectPath(projectId, `/agents/${agentId}/budget`), { add }),
        'The agent has tokens again, and its work goes on.',
      ),
  }
}

const isTask = (answer: unknown, id: string): answer is Task =>
  typeof answer === 'object' && answer !== null && 'id' in answer && answer.id === id
