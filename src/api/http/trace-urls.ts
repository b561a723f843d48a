// Every run in an answer has the address at which its trace can be seen. The addresses depend on this process's
// settings, so they are added when an answer is written.
import type { Db } from '../../db/pool.ts'
import { rootsOfRuns } from '../../journal/traced-runs.ts'
import { spanIdOf, type TracePlace, traceIdOf } from '../../observe/trace-ids.ts'
import type { App } from './app.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The answer is a run, a page of runs, or the answer of the supervisor system. */
    showsRuns?: boolean
  }
}

export type TraceUrlOf = (place: TracePlace) => string | null

interface Shown {
  id: string
  parent_run_id: string | null
}

type Answer = Shown | { items: readonly Shown[] } | { metadata: { run_id: string } }

export function showTraceUrls(app: App, { db, urlOf }: { db: Db; urlOf: TraceUrlOf }): void {
  app.addHook('preSerialization', async (request, reply, answer: unknown) => {
    if (!request.routeOptions.config.showsRuns || reply.statusCode >= 300) return answer
    return withUrls(answer as Answer) // these routes answer nothing else
  })

  async function withUrls(answer: Answer): Promise<unknown> {
    if ('metadata' in answer) {
      const { run_id: runId } = answer.metadata
      const url = urlOf({ traceId: traceIdOf(runId), spanId: spanIdOf(runId) })
      return url === null ? answer : { ...answer, metadata: { ...answer.metadata, trace_url: url } }
    }
    const runs = 'items' in answer ? answer.items : [answer]
    const roots = await rootsOf(runs)
    const shown = runs.map((run) => {
      const traceId = traceIdOf(roots.get(run.id) ?? run.id)
      return { ...run, trace_url: urlOf({ traceId, spanId: spanIdOf(run.id) }) }
    })
    return 'items' in answer ? { ...answer, items: shown } : shown[0]
  }

  /** Only the database knows which run is at the top of the tree of a sub-run. */
  async function rootsOf(runs: readonly Shown[]): Promise<ReadonlyMap<string, string>> {
    const ids = runs.filter((run) => run.parent_run_id !== null).map((run) => run.id)
    return ids.length === 0 ? new Map() : rootsOfRuns(db, ids)
  }
}
