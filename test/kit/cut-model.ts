// A provider of the OpenAI kind, over HTTP, that cuts the connection in the midst of its answer as often as a test
// demands.
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import type { Model } from '../../src/kernel/model-call.ts'
import { callModel } from '../../src/models/call-model.ts'
import { startBareServer } from './model-server.ts'

export interface CutAnswer {
  /** The text before each cut, in the pieces in which it is sent. */
  cut: readonly (readonly string[])[]
  /** The text in the end. */
  whole: readonly string[]
}

/** `answerTo` gets the request's body. The answer to a body is cut as often as `answerTo` says, then sent whole. */
export async function createCutModel(answerTo: (body: string) => CutAnswer): Promise<Model & { cuts(): number }> {
  const calls = new Map<string, number>()
  let cuts = 0
  const url = await startBareServer(async (request, response) => {
    let body = ''
    for await (const piece of request) body += piece
    const { cut, whole } = answerTo(body)
    const call = calls.get(body) ?? 0
    const said = cut[call]
    calls.set(body, said ? call + 1 : 0)
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    for (const content of said ?? whole) await write(response, chunk({ content }))
    if (said) {
      cuts++
      response.destroy()
      return
    }
    response.end(`${chunk({}, 'stop')}data: [DONE]\n\n`)
  })
  const model = createOpenAICompatible({ name: 'cut', baseURL: url }).chatModel('cut')
  return {
    contextTokens: 128_000,
    price: null,
    call: (request, options) => callModel(model, request, { ...options, idleTimeoutMs: 10_000 }),
    cuts: () => cuts,
  }
}

/** Resolves when the piece has left this process, because text that is sent before a cut must arrive. */
const write = (response: { write(text: string, done: () => void): boolean }, text: string): Promise<void> =>
  new Promise((resolve) => void response.write(text, resolve))

const chunk = (delta: object, finish: string | null = null): string =>
  `data: ${JSON.stringify({
    id: 'c',
    object: 'chat.completion.chunk',
    created: 1,
    model: 'cut',
    choices: [{ index: 0, delta, finish_reason: finish }],
  })}\n\n`
