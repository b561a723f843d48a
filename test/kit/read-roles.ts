// The rights on the routes that a console reads beside the lists.
import { project, type Row, readable } from './role-table.ts'

export const readRoles: readonly Row[] = [
  {
    route: 'GET /api/projects/:id/schedule/preview',
    path: project('/schedule/preview?cron_schedule=0+9+*+*+1-5'),
    expect: readable,
  },
  // The answer holds the projects of the caller, which may be none.
  { route: 'GET /api/home', expect: [401, 200, 200, 200, 200, 200, 200] },
  { route: 'GET /api/projects/:id/search', path: project('/search?q=a'), expect: readable },
  {
    route: 'POST /api/providers/:name/test',
    path: (ground) => `/api/providers/${ground.providerName}/test`,
    expect: [401, 403, 403, 403, 403, 403, 200],
  },
  { route: 'GET /api/projects/:id/usage', path: project('/usage'), expect: readable },
]
