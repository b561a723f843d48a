// The rights on the routes of the supervisor system.
import { forAdmins, forMembers, project, type Row, readable } from './role-table.ts'

const headers: Row['headers'] = ({ projectId }) => ({ 'x-project-id': projectId })
/** No worker executes runs here, so a valid task would get no answer: an empty task shows who may ask, with a 400. */
const forMembersIfSound = [401, 403, 400, 400, 404, 404, 400] as const
const part = { prompt_id: 'p', model: null }

export const supervisorRoles: readonly Row[] = [
  { route: 'POST /v1/agent/run', headers, body: () => ({ input: { task: ' ' } }), expect: forMembersIfSound },
  ...['', '/events'].map(
    (suffix): Row => ({
      route: `GET /v1/agent/runs/:run_id${suffix}`,
      path: ({ supervisorRunId }) => `/v1/agent/runs/${supervisorRunId}${suffix}`,
      headers,
      expect: forMembers(200),
    }),
  ),
  { route: 'POST /v1/agent/chat', headers, body: () => ({ id: 'chat', messages: [] }), expect: forMembersIfSound },
  {
    route: 'GET /v1/agent/chat/:chat_id/stream',
    path: () => '/v1/agent/chat/chat/stream',
    headers,
    expect: forMembers(204),
  },
  { route: 'GET /api/projects/:id/systems', path: project('/systems'), expect: readable },
  { route: 'GET /api/projects/:id/systems/:variant', path: project('/systems/blue'), expect: readable },
  {
    route: 'PUT /api/projects/:id/systems/:variant',
    path: project('/systems/blue'),
    body: () => ({
      supervisor: part,
      finalizer: part,
      escalation: part,
      traffic: 0,
      specialists: [{ name: 'a', ...part, tools: [] }],
    }),
    expect: forAdmins,
  },
]
