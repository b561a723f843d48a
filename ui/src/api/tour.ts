// The tour's reads of the demo.
import { queryOptions } from '@tanstack/react-query'
import type { FlowRun } from '../../../src/kernel/flow-run.ts'
import type { Project } from '../../../src/kernel/project.ts'
import { get, type Page } from './client.ts'
import { projectPath } from './queries.ts'

const MOST = 50

export const newestFlowsQuery = (projectId: string) =>
  queryOptions({
    queryKey: ['flow_run', projectId, 'list', 'tour'],
    queryFn: () => get<Page<FlowRun>>(projectPath(projectId, '/flow-runs'), { query: { limit: MOST } }),
  })

/** The project that the first start makes, unless somebody gave it another name. */
export const isDemo = ({ name }: Pick<Project, 'name'>): boolean => name === 'Demo'
