// The operations of the organisation in the log, one line each. Operators follow a piece of work by `correlation_id`,
// the id of its first task.
import type { Log, LogFields } from './log.ts'

/** Operations that happen many times to every task have the level debug. */
const operations = {
  'task.taken_up': ['debug', 'an agent took up a task'],
  'task.decided': ['debug', 'an agent made a decision about a task'],
  'task.delegated': ['info', 'an agent delegated a task'],
  'task.split': ['info', 'an agent split a task'],
  'task.completed': ['info', 'a task was completed'],
  'task.cancelled': ['info', 'a task was cancelled'],
  'task.handed_back': ['debug', 'a task was handed back'],
  'task.handed_over': ['info', 'the task of a deleted agent was handed over'],
  'task.retried': ['debug', 'a task will be tried again'],
  'task.blocked': ['warn', 'an agent is stuck and asks for help'],
  'task.escalated': ['info', 'an agent asked for help'],
  'task.freed': ['info', 'a blocked task may be tried again'],
  'task.refused': ['warn', 'an agent was refused a task'],
  'attempt.ended': ['debug', 'an attempt at a task ended'],
  'attempt.failed': ['warn', 'an attempt at a task failed'],
  'agent.started': ['info', 'somebody started an agent'],
  'agent.stopped': ['info', 'somebody stopped an agent'],
  'agent.status_changed': ['info', 'the status of an agent changed'],
  'budget.marked': ['warn', 'an agent has used a part of its allocation'],
  'budget.exhausted': ['warn', 'an agent has used up its allocation'],
  'budget.added': ['info', 'an agent was given tokens'],
  'budget.refused': ['warn', 'an agent was refused tokens for another'],
  'message.sent': ['debug', 'an agent was sent a message'],
} as const satisfies Record<string, readonly ['debug' | 'info' | 'warn', string]>

export type Operation = keyof typeof operations

export interface About {
  project_id: string
  agent_id?: string | null | undefined
  task_id?: string | null | undefined
  run_id?: string | null | undefined
  /** The first task of the piece of work. */
  correlation_id?: string | null | undefined
}

export function noteOperation(log: Log, operation: Operation, about: About, more: LogFields = {}): void {
  const [level, sentence] = operations[operation]
  const ids = Object.fromEntries(Object.entries(about).filter(([, id]) => id !== null && id !== undefined))
  log[level]({ operation, ...ids, ...more }, sentence)
}

export interface NotedTask {
  id: string
  project_id: string
  assigned_to: string | null
  attempt_run_id: string | null
  /** The first task of the piece of work: this one, if there is none above it. */
  root_task_id: string
}

export const aboutTask = (task: NotedTask): About => ({
  project_id: task.project_id,
  agent_id: task.assigned_to,
  task_id: task.id,
  run_id: task.attempt_run_id,
  correlation_id: task.root_task_id,
})
