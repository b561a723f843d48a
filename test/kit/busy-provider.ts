// A provider on loopback that takes a few calls at once and answers 429 beyond, or 503 to all while it is down.
import { text } from 'node:stream/consumers'
import { serveLocally } from './local-server.ts'
import type { Cleanup } from './process.ts'

export interface BusyProvider {
  readonly url: string
  isDown: boolean
  /** The number of calls that were answered, and of those that were refused. */
  answered: number
  refused: number
}

export async function startBusyProvider(
  t: Cleanup,
  { atOnce, callMs, headers = {} }: { atOnce: number; callMs: number; headers?: Record<string, string> },
): Promise<BusyProvider> {
  let underWay = 0
  const provider = { url: '', isDown: false, answered: 0, refused: 0 }
  const origin = await serveLocally(t, async (request, response) => {
    await text(request)
    if (provider.isDown || underWay >= atOnce) {
      provider.refused++
      response.writeHead(provider.isDown ? 503 : 429, { 'content-type': 'application/json', ...headers })
      response.end(JSON.stringify({ error: { message: provider.isDown ? 'Down.' : 'Rate limit reached.' } }))
      return
    }
    underWay++
    await new Promise((resolve) => setTimeout(resolve, callMs))
    underWay--
    provider.answered++
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    const chunk = { id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm' }
    const send = (data: object): void => void response.write(`data: ${JSON.stringify({ ...chunk, ...data })}\n\n`)
    send({ choices: [{ index: 0, delta: { content: 'Done.' }, finish_reason: null }] })
    send({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] })
    send({ choices: [], usage: { prompt_tokens: 10, completion_tokens: 2, total_tokens: 12 } })
    response.end('data: [DONE]\n\n')
  })
  return Object.assign(provider, { url: `${origin}/v1` })
}
