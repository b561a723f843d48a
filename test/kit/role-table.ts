// The rows of the table of rights (roles.slow.test.ts): a route, its call, and the status that each identity gets.
import type { TestGraph } from './graph.ts'

/**
 * The rows that make a call valid. They are made anew after every change, so that the success of one identity does not
 * cause a 404 for the next.
 */
export interface Ground {
  projectId: string
  keyId: string
  memberId: string
  providerName: string
  invitation: string
  userId: string
  reset: string
  sessionId: string
  agentId: string
  hookId: string
  /** A paused run that can be resumed; its journal is complete. */
  runId: string
  /** A run of the supervisor that has failed. */
  supervisorRunId: string
  taskId: string
  mcpServer: string
  flowId: string
  /** A queued flow run. No worker executes flows here, so the flow run is not over before it is cancelled. */
  flowRunId: string
  endedFlowRunId: string
  alertId: string
  evalId: string
  graph: TestGraph
}

export interface Row {
  route: string
  path?: (ground: Ground) => string
  body?: (ground: Ground) => unknown
  headers?: Record<string, string> | ((ground: Ground) => Record<string, string>)
  /** Expected statuses: nobody, viewer, member, admin of the project, admin of another, a signed-in stranger, instance. */
  expect: readonly [number, number, number, number, number, number, number]
}

export const project = (suffix: string) => (ground: Ground) => `/api/projects/${ground.projectId}${suffix}`

export const readable = [401, 200, 200, 200, 404, 404, 200] as const
/** The expected statuses of an action for admins only that answers 200. */
export const forAdmins = [401, 403, 403, 200, 404, 404, 200] as const
export const forMembers = (status: number) => [401, 403, status, status, 404, 404, status] as const
