// Traces are sent to LangSmith by its own OTLP endpoint. The address of a run there is made of three ids: those of the
// workspace and of the project, which LangSmith is asked for once, and that of the span, filled up with zeros from the
// left (langsmith-sdk, `langsmith_run_id_from_otel_span_id`).
import { z } from 'zod'
import type { Log } from '../kernel/log.ts'
import type { TracePlace } from './trace-ids.ts'
import type { TraceTarget } from './tracing.ts'

export interface Langsmith {
  /** LANGSMITH_ENDPOINT, the base of LangSmith's API. */
  url: URL
  key: string
  /** The name of the project that the traces belong to. LangSmith makes the project with the first trace. */
  project: string
}

export const langsmithTarget = ({ url, key, project }: Langsmith): TraceTarget => ({
  url: `${baseOf(url)}/otel/v1/traces`,
  headers: { 'x-api-key': key, 'langsmith-project': project },
  // LangSmith's own exporters use this encoding.
  format: 'protobuf',
  runsOnly: true,
})

const ANSWERS_WITHIN_MS = 5_000
const ASK_AGAIN_AFTER_MS = 30_000

/** Any answer may have further fields. */
const projects = z.array(z.object({ id: z.uuid(), tenant_id: z.uuid() }))

/** The address of a span; null until LangSmith, which the first call asks, has named the project. */
export function createLangsmithUrls({
  langsmith,
  fetch,
  log,
  now = Date.now,
}: {
  langsmith: Langsmith
  fetch: typeof globalThis.fetch
  log: Log
  now?: () => number
}): (place: TracePlace) => string | null {
  let home: string | null = null
  let askedAt = Number.NEGATIVE_INFINITY

  async function ask(): Promise<void> {
    const name = encodeURIComponent(langsmith.project)
    const answer = await fetch(`${baseOf(langsmith.url)}/sessions?name=${name}&limit=1`, {
      headers: { 'x-api-key': langsmith.key },
      signal: AbortSignal.timeout(ANSWERS_WITHIN_MS),
    })
    if (!answer.ok) {
      await answer.body?.cancel()
      throw new Error(`LangSmith answered ${answer.status}`)
    }
    const [found] = projects.parse(await answer.json())
    if (found) home = `${webOf(langsmith.url)}/o/${found.tenant_id}/projects/p/${found.id}`
  }

  return ({ spanId }) => {
    if (home === null && now() - askedAt >= ASK_AGAIN_AFTER_MS) {
      askedAt = now()
      ask().catch((error: unknown) => {
        log.info({ err: error }, 'LangSmith did not name the place of its traces; it will be asked again')
      })
    }
    return home === null ? null : `${home}/r/${langsmithRunId(spanId)}?poll=true`
  }
}

export const langsmithRunId = (spanId: string): string =>
  `00000000-0000-0000-${spanId.slice(0, 4)}-${spanId.slice(4, 16)}`

const baseOf = (url: URL): string => url.href.replace(/\/+$/, '')

/** People see LangSmith at another address than programs do: the address without `api`. */
export function webOf(url: URL): string {
  const region = /^(?:([a-z]+)\.)?api\.smith\.langchain\.com$/.exec(url.hostname)
  if (region) return `https://${region[1] ? `${region[1]}.` : ''}smith.langchain.com`
  return baseOf(url).replace(/\/api(\/v1)?$/, '')
}
