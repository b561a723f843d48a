// The rights on the route of layouts.
import { forMembers, type Row } from './role-table.ts'

export const genuiRoles: readonly Row[] = [
  {
    route: 'POST /v1/genui/layout',
    headers: ({ projectId }) => ({ 'x-project-id': projectId }),
    body: ({ graph }) => ({ context: { scenario: 'approval', task_id: graph.suggestionId } }),
    expect: forMembers(200),
  },
]
