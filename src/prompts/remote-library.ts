// The prompt library of another process or another program: `POST /v1/prompts/get`. Nothing is kept: every run asks.

import { z } from 'zod'
import type { Fetch } from '../egress/egress.ts'
import { readBody } from '../egress/read-body.ts'
import { type MusterError, promptMissing, unavailable } from '../kernel/errors.ts'
import { promptMessages } from '../kernel/prompt.ts'
import type { LibraryPrompt, PromptLibrary } from './library.ts'

export interface RemoteLibraryOptions {
  /** The address of the service; the path of the request is added. */
  url: URL
  /** A key of the one project that runs here, or the admin token of the other instance. */
  key: string | null
  /** The `fetch` of the `trusted` policy, because the operator sets the address. */
  fetch: Fetch
  timeoutMs?: number
}

const TIMEOUT_MS = 5_000
const LARGEST_ANSWER = 4 * 1_048_576

/** Another program may send more fields than Muster needs. */
const answerSchema = z.object({ prompt: z.object({ variant: z.object({ messages: promptMessages }) }) })
const refusalSchema = z.object({ error: z.object({ code: z.string() }) })

export function createRemoteLibrary(options: RemoteLibraryOptions): PromptLibrary {
  const { url, key, fetch, timeoutMs = TIMEOUT_MS } = options
  const address = new URL(`${url.pathname.replace(/\/+$/, '')}/v1/prompts/get`, url)

  async function ask(projectId: string, promptId: string, variantId: string): Promise<Response> {
    try {
      return await fetch(address, {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          'x-project-id': projectId,
          ...(key === null ? {} : { authorization: `Bearer ${key}` }),
        },
        body: JSON.stringify({ prompt_id: promptId, variant_id: variantId }),
        signal: AbortSignal.timeout(timeoutMs),
      })
    } catch (error) {
      throw away('cannot be reached', error)
    }
  }

  const away = (problem: string, cause?: unknown, retryAfterS?: number): MusterError =>
    unavailable(`The prompt library at ${url.origin} ${problem}.`, cause, retryAfterS)

  return {
    get: async (projectId, promptId, variantId) => {
      const response = await ask(projectId, promptId, variantId)
      const body = await readJson(response).catch((error: unknown) => {
        throw away('gave no whole answer', error)
      })
      if (response.ok) return readPrompt(body)
      const code = refusalSchema.safeParse(body).data?.error.code
      // Any other 404 is about the project or the address, and says nothing about the prompt.
      if (response.status === 404 && code === 'PROMPT_MISSING') {
        throw promptMissing(promptId, variantId, { isDuringRun: true })
      }
      if (response.status === 401 || response.status === 403) {
        throw away(`refuses the key (${response.status}): set MUSTER_PROMPTS_KEY`)
      }
      if (response.status === 404 && code === 'NOT_FOUND') {
        throw away(`does not know the project ${projectId}, or its key is another project's`)
      }
      throw away(`answers ${response.status}${code ? ` ${code}` : ''}`, undefined, retryAfterOf(response))
    },
  }

  function readPrompt(body: unknown): LibraryPrompt {
    const parsed = answerSchema.safeParse(body)
    if (!parsed.success) throw away('gives answers that are no prompts', parsed.error)
    return { messages: parsed.data.prompt.variant.messages, version: null }
  }
}

/** Returns undefined if the body is not JSON: the status is enough then. Rejects if the connection is cut. */
async function readJson(response: Response): Promise<unknown> {
  const { bytes } = await readBody(response, LARGEST_ANSWER)
  try {
    return JSON.parse(bytes.toString('utf8'))
  } catch {
    return undefined
  }
}

function retryAfterOf(response: Response): number | undefined {
  const text = response.headers.get('retry-after') ?? ''
  return /^\d{1,5}$/.test(text) ? Number(text) : undefined
}
