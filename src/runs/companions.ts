import type { Db } from '../db/pool.ts'
import type { Charge } from '../queue/queue-table.ts'

/** Another worker of this process that shares the name and the lease of its worker of runs. */
export interface Companion {
  onNotification(channel: string, payload: string): void
  /** Notifications may have been lost before the new connection. */
  onListening?(): void
  /** The rows that this process owns may be another process's. */
  onLapse?(): void
  /** Another process has died: its work is freed in this transaction. */
  onDeath?(tx: Db, workerId: string, charge: Charge): Promise<void>
  /** Agents of the project were given tasks. */
  onTasks?(projectId: string): void
  /** The run of a task has ended, or waits: its agent may take up another task. */
  onAttempt?(agentId: string, projectId: string): void
  /** The run of a case of an eval has ended, or waits. */
  onEvalRun?(projectId: string): void
}

type Told = Omit<Companion, 'onDeath'>

export interface Companions {
  join(companion: Companion): void
  tell<Event extends keyof Told>(event: Event, ...given: Parameters<NonNullable<Told[Event]>>): void
  onDeath(tx: Db, workerId: string, charge: Charge): Promise<void>
}

export function createCompanions(): Companions {
  const companions: Companion[] = []
  return {
    join: (companion) => void companions.push(companion),
    tell: (event, ...given) => {
      // The cast joins the event to its own parameters, as the signature does.
      for (const companion of companions) (companion[event] as ((...args: unknown[]) => void) | undefined)?.(...given)
    },
    onDeath: async (tx, workerId, charge) => {
      for (const companion of companions) await companion.onDeath?.(tx, workerId, charge)
    },
  }
}
