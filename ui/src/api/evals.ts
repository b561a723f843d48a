// Evals: the same cases on several variants of the supervisor system.
import { infiniteQueryOptions, queryOptions } from '@tanstack/react-query'
import type { Eval, EvalInput, ListedEval } from '../../../src/kernel/eval.ts'
import type { Run } from '../../../src/kernel/run.ts'
import { get, type Page, post, startWork } from './client.ts'
import { pagedQuery } from './pages.ts'
import { projectPath } from './queries.ts'

const PAGE = 50
/** An eval under way is read again after this time, and one with many results more rarely. */
const READ_EVERY_MS = 1_500
const READ_LARGE_EVERY_MS = 5_000
const LARGE = 200

const isUnderWay = ({ status }: Pick<ListedEval, 'status'>): boolean => status === 'running'

export const evalsQuery = (projectId: string) =>
  infiniteQueryOptions({
    ...pagedQuery<ListedEval>(['eval', projectId, 'list'], projectPath(projectId, '/evals'), { limit: PAGE }),
    refetchInterval: ({ state }) =>
      state.data?.pages.some(({ items }) => items.some(isUnderWay)) ? READ_EVERY_MS : false,
  })

export const evalQuery = (projectId: string, evalId: string) =>
  queryOptions({
    queryKey: ['eval', projectId, evalId],
    queryFn: () => get<Eval>(projectPath(projectId, `/evals/${evalId}`)),
    refetchInterval: ({ state: { data } }) => {
      if (!data || !isUnderWay(data)) return false
      return data.progress.total > LARGE ? READ_LARGE_EVERY_MS : READ_EVERY_MS
    },
  })

/** The newest runs of the supervisor that ended: their course may be a case. */
export const recordedRunsQuery = (projectId: string) =>
  queryOptions({
    queryKey: ['run', projectId, 'list', 'recorded'],
    queryFn: async () => {
      const { items } = await get<Page<Run>>(projectPath(projectId, '/runs'), { query: { limit: 200 } })
      return items.filter(isRecorded)
    },
  })

const isRecorded = ({ agent_id, parent_run_id, completed_at, trigger }: Run): boolean =>
  agent_id === null && parent_run_id === null && completed_at !== null && !('eval_id' in trigger)

export const createEval = (projectId: string, input: EvalInput): Promise<ListedEval> =>
  startWork(projectPath(projectId, '/evals'), input)

export const cancelEval = (projectId: string, evalId: string): Promise<ListedEval> =>
  post(projectPath(projectId, `/evals/${evalId}/cancel`))
