// Checkpoints of LangGraph's graphs in PostgreSQL (saver.ts), written together with those of all other graphs of the
// process. Values are stored exactly or refused (plain-values.ts). LangGraph is loaded when the first graph needs a
// saver: loading it would take a third of the time in which a server starts.
import type { BaseCheckpointSaver } from '@langchain/langgraph-checkpoint'
import type { Pool } from '../../db/pool.ts'
import type { Log } from '../../kernel/log.ts'
import { createReadCheckpoint } from './read-checkpoints.ts'
import { createPutCheckpoint } from './write-checkpoints.ts'

export interface Checkpoints {
  /** A saver that sees the threads of this project only. Savers are cheap: each compiled graph may have its own. */
  saverFor(projectId: string): Promise<BaseCheckpointSaver>
}

export function createCheckpoints({ pool, log }: { pool: Pool; log: Log }): Checkpoints {
  const read = createReadCheckpoint(pool)
  const put = createPutCheckpoint({ db: pool, log })
  return {
    saverFor: async (projectId) => {
      const { Saver } = await import('./saver.ts')
      return new Saver({ db: pool, read, put, projectId })
    },
  }
}
