// The rights on the routes of evals.
import { forMembers, project, type Row } from './role-table.ts'

export const smallEval = { name: 'an eval', variants: ['blue', 'green'], cases: [{ task: 'x', expect: {} }] }

export const evalRoles: readonly Row[] = [
  { route: 'GET /api/projects/:id/evals', path: project('/evals'), expect: forMembers(200) },
  {
    route: 'POST /api/projects/:id/evals',
    path: project('/evals'),
    body: () => smallEval,
    expect: forMembers(201),
  },
  {
    route: 'GET /api/projects/:id/evals/:evalId',
    path: (ground) => project(`/evals/${ground.evalId}`)(ground),
    expect: forMembers(200),
  },
  {
    route: 'POST /api/projects/:id/evals/:evalId/cancel',
    path: (ground) => project(`/evals/${ground.evalId}/cancel`)(ground),
    expect: forMembers(200),
  },
]
