// The status of an agent, as a table of allowed transitions. An event that the table does not list changes nothing.
import type { Agent } from './agent.ts'

export type AgentStatus = Agent['status']
export const agentStatuses = ['active', 'bored', 'stuck', 'paused'] as const satisfies readonly AgentStatus[]

/** Why an agent is paused: somebody stopped it, or its tokens are used up. */
export type PausedFor = 'stopped' | 'budget'

export interface StatusState {
  status: AgentStatus
  paused_for: PausedFor | null
}

/** given: a task came · blocked: a task failed too often · freed: an escalation was resolved. */
export const statusEvents = ['given', 'idle', 'blocked', 'freed', 'stop', 'start', 'exhausted', 'funded'] as const
export type StatusEvent = (typeof statusEvents)[number]

const active: StatusState = { status: 'active', paused_for: null }
const bored: StatusState = { status: 'bored', paused_for: null }
const stuck: StatusState = { status: 'stuck', paused_for: null }
const stopped: StatusState = { status: 'paused', paused_for: 'stopped' }
const broke: StatusState = { status: 'paused', paused_for: 'budget' }

type Place = 'active' | 'bored' | 'stuck' | 'stopped' | 'broke'

const transitions: Readonly<Record<Place, Partial<Record<StatusEvent, StatusState>>>> = {
  active: { idle: bored, blocked: stuck, stop: stopped, exhausted: broke },
  bored: { given: active, start: active, stop: stopped, exhausted: broke },
  stuck: { freed: active, start: active, stop: stopped, exhausted: broke },
  stopped: { start: active },
  broke: { start: active, stop: stopped, funded: active },
}

/** The state after the event; the same object if nothing changes. */
export function stateAfter(state: StatusState, event: StatusEvent): StatusState {
  return transitions[placeOf(state)][event] ?? state
}

function placeOf({ status, paused_for }: StatusState): Place {
  if (status !== 'paused') return status
  return paused_for === 'budget' ? 'broke' : 'stopped'
}

/** An agent that may be given work: it is enabled, it is active or bored, and it has tokens left. */
export const isAvailable = (agent: Pick<Agent, 'enabled' | 'status' | 'token_allocation' | 'token_used'>): boolean =>
  agent.enabled &&
  (agent.status === 'active' || agent.status === 'bored') &&
  (agent.token_allocation === null || agent.token_used < agent.token_allocation)
