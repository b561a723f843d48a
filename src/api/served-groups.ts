// The services that a process may be (MUSTER_SERVE), and the routes of each. Every process serves health, readiness,
// metrics and the description of the API; a worker (MUSTER_ROLE) serves nothing else.

export const services = ['all', 'agent', 'prompts', 'genui', 'ui'] as const
/** `all`: one process is every service. */
export type Service = (typeof services)[number]

/**
 * api: all routes below /api, /v1/agent and /hooks, and the sign-in links · prompts: the library, in both of its forms
 * · genui: /v1/genui · pages: the console. `ui` has only pages, and forwards other requests (ui-server.ts).
 */
export type RouteGroup = 'api' | 'prompts' | 'genui' | 'pages'

const GROUPS: Readonly<Record<Exclude<Service, 'ui'>, readonly RouteGroup[]>> = {
  all: ['api', 'prompts', 'genui', 'pages'],
  // The pages' requests are forwarded to this service, so it has the routes of the smaller services too.
  agent: ['api', 'prompts', 'genui'],
  prompts: ['prompts'],
  genui: ['genui'],
}

export const groupsOf = (service: Exclude<Service, 'ui'>): ReadonlySet<RouteGroup> => new Set(GROUPS[service])
