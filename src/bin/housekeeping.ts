import { sealAudit } from '../audit/seal.ts'
import type { Pool } from '../db/pool.ts'
import type { Journal } from '../journal/append.ts'
import { pruneLiveText } from '../journal/live-text.ts'
import { wakeFunded } from '../journal/month.ts'
import type { Log } from '../kernel/log.ts'
import { repeat } from '../queue/repeat.ts'
import { endUnavailable } from '../supervisor/end-unavailable.ts'
import { abandonStuck } from '../triggers/abandon-stuck.ts'
import { removeProjects } from './remove-projects.ts'
import { removeLapsed } from './retention.ts'

const PRUNE_EVERY_MS = 10 * 60_000
const SEAL_EVERY_MS = 1_000
const LOOK_FOR_STUCK_EVERY_MS = 1_000
const LOOK_FOR_TEXTS_EVERY_MS = 5_000
const LOOK_FOR_DELETED_EVERY_MS = 5_000
const LOOK_FOR_FUNDED_EVERY_MS = 10_000

export interface Housekeeping {
  /** Ends the rounds, and seals the audit entries written so far before it returns. */
  stop(): Promise<void>
}

/**
 * Removes lapsed rows every ten minutes, and ends supervisor's runs that nobody continued; seals audit entries and gives up stuck entries every second. Removes, within
 * seconds, the texts that a killed process left (one for each step under way) and begins to remove the rows of deleted
 * projects. Wakes runs that were forgotten when the limit of their month was raised. Several processes may do this at
 * once.
 */
export function startHousekeeping({ pool, journal, log }: { pool: Pool; journal: Journal; log: Log }): Housekeeping {
  const seal = (): Promise<unknown> => sealAudit(pool)
  const stopping = new AbortController()
  const rounds = [
    repeat({ work: seal, everyMs: SEAL_EVERY_MS, ifItFails: 'the audit log will be sealed later', log }),
    repeat({
      work: () => abandonStuck({ pool, journal }),
      everyMs: LOOK_FOR_STUCK_EVERY_MS,
      ifItFails: 'entries that are stuck will be given up later',
      log,
    }),
    repeat({
      work: () => pruneLiveText(pool),
      everyMs: LOOK_FOR_TEXTS_EVERY_MS,
      ifItFails: 'texts that a killed process left will be removed later',
      log,
    }),
    repeat({
      work: () => removeProjects(pool, { signal: stopping.signal }),
      everyMs: LOOK_FOR_DELETED_EVERY_MS,
      ifItFails: 'the rows of deleted projects will be removed later',
      log,
    }),
    repeat({
      work: async () => {
        const count = await wakeFunded(pool)
        if (count > 0)
          log.warn({ runs: count }, 'runs waited for tokens of the month although there were some; they go on')
      },
      everyMs: LOOK_FOR_FUNDED_EVERY_MS,
      ifItFails: 'runs that wait for tokens of the month will be looked for later',
      log,
    }),
    repeat({
      work: async () => {
        const count = await endUnavailable({ pool, journal }, stopping.signal)
        if (count > 0) log.info({ runs: count }, 'runs failed that were unavailable and that nobody continued')
      },
      everyMs: PRUNE_EVERY_MS,
      ifItFails: 'runs that were unavailable for too long will be ended later',
      log,
    }),
    repeat({
      work: () => removeLapsed(pool, stopping.signal),
      everyMs: PRUNE_EVERY_MS,
      ifItFails: 'what has lapsed will be removed later',
      log,
    }),
  ]
  return {
    stop: async () => {
      stopping.abort()
      await Promise.all(rounds.map((stop) => stop()))
      await seal().catch((error: unknown) => log.warn({ err: error }, 'the audit log will be sealed at the next start'))
    },
  }
}
