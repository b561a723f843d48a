import { APICallError } from '@ai-sdk/provider'
import { z } from 'zod'
import type { Fetch } from '../egress/egress.ts'

const modelList = z.object({ data: z.array(z.object({ id: z.string() })) })

/** The names of the models of a server of OpenAI's format. Throws an APICallError, as a call of a model does. */
export async function listModels(
  { fetch, baseUrl, headers }: { fetch: Fetch; baseUrl: string; headers: Record<string, string> },
  signal: AbortSignal,
): Promise<string[]> {
  const url = `${baseUrl.replace(/\/+$/, '')}/models`
  const response = await fetch(url, { headers, signal })
  const responseBody = await response.text()
  const failure = (message: string): APICallError =>
    new APICallError({
      message,
      url,
      requestBodyValues: {},
      statusCode: response.status,
      responseHeaders: Object.fromEntries(response.headers),
      responseBody,
    })
  if (!response.ok) throw failure(response.statusText)
  const { success, data } = modelList.safeParse(parsed(responseBody))
  if (!success) throw failure('The answer is no list of models')
  return data.data.map(({ id }) => id)
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}
