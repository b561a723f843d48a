// Suspects are rows that took two processes with them. One of them at a time has its turn in the whole instance.

import type { Log } from '../kernel/log.ts'
import { NO_PROJECT } from './queue-table.ts'

export interface QueuedRow {
  id: string
  project_id: string
}

export interface SuspectTurnOptions<Claimed extends QueuedRow> {
  /** The name of the rows in the log, such as "runs". */
  name: string
  ownerId: () => string
  /** Claims one suspect if none has its turn in the instance. `lastProjectId` had the last turn here. */
  claimSuspect: (owner: string, lastProjectId: string) => Promise<Claimed | null>
  /** Frees the turn if this process's suspect has ended, progressed or overstayed. True if there is none now. */
  releaseSuspect: (owner: string) => Promise<boolean>
  log: Log
}

export function createSuspectTurn<Claimed extends QueuedRow>(options: SuspectTurnOptions<Claimed>) {
  let suspect: Claimed | null = null
  let lastProject = NO_PROJECT
  let isHeld = false
  return {
    /** Claims a suspect. Null if none waits, or if one has its turn already. */
    take: async (): Promise<Claimed | null> => {
      if (isHeld) return null
      const claimed = await options.claimSuspect(options.ownerId(), lastProject).catch((error: unknown) => {
        // The answer may be lost although this process owns the suspect. The next sweeps free it and pass it on.
        isHeld = true
        throw error
      })
      if (!claimed) return null
      options.log.warn(
        { id: claimed.id },
        `a suspect among the ${options.name}, whose owners died twice, is tried again`,
      )
      suspect = claimed
      lastProject = claimed.project_id
      isHeld = true
      return claimed
    },
    has: (claimed: Claimed): boolean => claimed === suspect,
    /** The database may name this process for a suspect. */
    isHeld: (): boolean => isHeld,
    passOn: async (): Promise<void> => {
      const passed = suspect
      if (!(await options.releaseSuspect(options.ownerId())) || suspect !== passed) return
      isHeld = false
      suspect = null
    },
  }
}
