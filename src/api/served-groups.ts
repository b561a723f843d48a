// The services that a process may be (MUSTER_SERVE), and the routes of each. Health, readiness, metrics and the
// description of the API are everywhere; a worker (MUSTER_ROLE) has nothing else.

export const services = ['all', 'agent', 'prompts', 'genui', 'ui'] as const
/** `all`: one process is every service. */
export type Service = (typeof services)[number]

/**
 * api: everything below /api, /v1/agent and /hooks, and the sign-in links · prompts: the library, in both of its forms ·
 * genui: /v1/genui · pages: what people see. The service `ui` is no part of this table: it has pages and no database,
 * and forwards the rest (ui-server.ts).
 */
export type RouteGroup = 'api' | 'prompts' | 'genui' | 'pages'

const GROUPS: Readonly<Record<Exclude<Service, 'ui'>, readonly RouteGroup[]>> = {
  all: ['api', 'prompts', 'genui', 'pages'],
  // The pages' requests are forwarded to this service, so it answers for the smaller ones too.
  agent: ['api', 'prompts', 'genui'],
  prompts: ['prompts'],
  genui: ['genui'],
}

export const groupsOf = (service: Exclude<Service, 'ui'>): ReadonlySet<RouteGroup> => new Set(GROUPS[service])
