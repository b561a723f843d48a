// A provider of the OpenAI kind, over HTTP, for the parts of a supervisor system: each part asks a model of its own name,
// and the test chooses that model's answers.
import type { IncomingMessage, ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'
import { createGates, type Gates } from './gates.ts'
import { serveLocally } from './local-server.ts'
import type { Cleanup } from './process.ts'

export interface NodeAnswer {
  /** The pieces of the text. Between two pieces the answer waits while the gate is held. */
  say: readonly string[]
  gate?: string
  /** A failure: the connection is cut after the text, or the request is refused. */
  ending?: 'cut' | 'refuse'
  /** The message of a refusal. */
  message?: string
}

export interface NodeModel extends Gates {
  readonly url: string
}

/** `answerTo` gets the model's name, the text of the prompt, and the number of earlier calls of that model. */
export async function startNodeModel(
  t: Cleanup,
  answerTo: (model: string, prompt: string, call: number) => NodeAnswer,
): Promise<NodeModel> {
  const gates = createGates()
  const calls = new Map<string, number>()

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body: { model: string; messages: unknown } = JSON.parse(await text(request))
    const prompt = JSON.stringify(body.messages)
    const call = calls.get(body.model) ?? 0
    calls.set(body.model, call + 1)
    const { say, gate, ending, message = 'I will not.' } = answerTo(body.model, prompt, call)
    if (ending === 'refuse') {
      response.writeHead(400, { 'content-type': 'application/json' }).end(JSON.stringify({ error: { message } }))
      return
    }
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    for (const [place, content] of say.entries()) {
      if (place > 0 && gate !== undefined) await gates.pass(gate, response)
      await new Promise((resolve) => response.write(chunk({ content }), resolve))
    }
    if (ending === 'cut') response.destroy()
    else response.end(`${chunk({}, 'stop')}data: [DONE]\n\n`)
  }

  return { url: `${await serveLocally(t, answer)}/v1`, ...gates.forTests }
}

const chunk = (delta: object, finish: string | null = null): string =>
  `data: ${JSON.stringify({
    id: 'c',
    object: 'chat.completion.chunk',
    created: 1,
    model: 'node',
    choices: [{ index: 0, delta, finish_reason: finish }],
  })}\n\n`
