import { sealAudit } from '../audit/seal.ts'
import type { Pool } from '../db/pool.ts'
import type { Journal } from '../journal/journal.ts'
import { pruneLiveText } from '../journal/live-text.ts'
import { wakeFunded } from '../journal/month.ts'
import type { Log } from '../kernel/log.ts'
import { repeat } from '../kernel/repeat.ts'
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
 * Every ten minutes: removes lapsed rows, ends supervisor's runs that nobody continued. Every second: seals audit
 * entries, gives up stuck entries. Within seconds: removes texts that a killed process left and rows of deleted
 * projects, wakes runs whose month's limit was raised. Several processes may do this at once.
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
        if (count > 0) log.info({ runs: count }, 'runs with an unavailable model failed, because nobody continued them')
      },
      everyMs: PRUNE_EVERY_MS,
      ifItFails: 'runs with a model unavailable for too long will be ended later',
      log,
    }),
    repeat({
      work: () => removeLapsed(pool, stopping.signal),
      everyMs: PRUNE_EVERY_MS,
      ifItFails: 'lapsed rows will be removed later',
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
