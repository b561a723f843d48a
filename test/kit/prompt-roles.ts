// The rights on the routes of the prompt library.
import { forAdmins, project, type Row, readable } from './role-table.ts'

const variant = '/api/projects/:id/prompts/:prompt_id/variants/:variant_id'
const planner = (part: string) => project(`/prompts/supervisor_planner/variants/blue${part}`)

export const promptRoles: readonly Row[] = [
  { route: 'GET /api/projects/:id/prompts', path: project('/prompts'), expect: readable },
  ...['', '/versions', '/diff'].map(
    (part): Row => ({ route: `GET ${variant}${part}`, path: planner(part), expect: readable }),
  ),
  {
    route: `PUT ${variant}`,
    path: planner(''),
    body: () => ({ messages: [{ role: 'system', content: 'x' }] }),
    expect: forAdmins,
  },
  { route: `DELETE ${variant}`, path: planner(''), expect: [401, 403, 403, 204, 404, 404, 204] },
  { route: `POST ${variant}/rollback`, path: planner('/rollback'), body: () => ({ version: 1 }), expect: forAdmins },
  {
    route: 'POST /v1/prompts/get',
    headers: ({ projectId }) => ({ 'x-project-id': projectId }),
    body: () => ({ prompt_id: 'supervisor_planner', variant_id: 'blue' }),
    expect: readable,
  },
]
