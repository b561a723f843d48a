// A provider on loopback that answers by the plan in the run's input, and remembers every request. The provider keeps
// no state between requests: the history in a request shows the next step, whichever process sends the request.
import type { IncomingMessage, ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'
import { z } from 'zod'
import { createGates, type Gates } from './gates.ts'
import { serveLocally } from './local-server.ts'
import type { Cleanup } from './process.ts'

const stepShape = z.strictObject({
  say: z.string(),
  /** The answer pauses in the middle of its text while this gate is held. */
  gate: z.string().optional(),
  calls: z.array(z.strictObject({ name: z.string(), args: z.record(z.string(), z.unknown()) })).default([]),
})
/** A run's input. The tag tells the model's requests apart. */
export const planShape = z.strictObject({ tag: z.string(), steps: z.array(stepShape) })
export type Plan = z.input<typeof planShape>

export interface ModelRequest {
  tag: string
  /** The step, counted from 1 as runs do. */
  step: number
  inputTokens: number
  outputTokens: number
  state: 'under way' | 'answered' | 'cut'
  /** The instant at which the connection was gone, by performance.now(). */
  cutAt: number | null
}

export interface FakeModel extends Gates {
  readonly url: string
  readonly requests: readonly ModelRequest[]
  requestsOf(tag: string): ModelRequest[]
}

/** The usage that the model reports for a step; the same for every request. */
export const usageOfStep = (step: number): { inputTokens: number; outputTokens: number } => ({
  inputTokens: 100 + step,
  outputTokens: 10 + step,
})

const requestShape = z.looseObject({
  messages: z.array(z.looseObject({ role: z.string(), content: z.unknown().optional() })),
})

export async function startFakeModel(t: Cleanup): Promise<FakeModel> {
  const requests: ModelRequest[] = []
  const gates = createGates()

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { messages } = requestShape.parse(JSON.parse(await text(request)))
    const plan = planOf(messages)
    const step = messages.filter(({ role }) => role === 'assistant').length + 1
    const planned = plan?.steps[step - 1]
    if (!plan || !planned) {
      response.statusCode = 400
      response.end(JSON.stringify({ error: { message: `nothing is planned for step ${step} of ${plan?.tag}` } }))
      return
    }
    const entry: ModelRequest = { tag: plan.tag, step, ...usageOfStep(step), state: 'under way', cutAt: null }
    requests.push(entry)
    response.once('close', () => {
      if (entry.state === 'answered') return
      entry.state = 'cut'
      entry.cutAt = performance.now()
    })
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    const send = (chunk: unknown): void => void response.write(`data: ${JSON.stringify(chunk)}\n\n`)
    const words = planned.say.split(/(?<= )/)
    const half = Math.ceil(words.length / 2)
    for (const word of words.slice(0, half)) send(delta({ content: word }))
    if (planned.gate !== undefined) await gates.pass(planned.gate, response)
    if (response.destroyed) return
    for (const word of words.slice(half)) send(delta({ content: word }))
    planned.calls.forEach(({ name, args }, index) => {
      const call = { index, id: `call_${step}_${index + 1}`, type: 'function' }
      send(delta({ tool_calls: [{ ...call, function: { name, arguments: JSON.stringify(args) } }] }))
    })
    send(delta({}, planned.calls.length > 0 ? 'tool_calls' : 'stop'))
    const usage = { prompt_tokens: entry.inputTokens, completion_tokens: entry.outputTokens }
    send({ ...CHUNK, choices: [], usage: { ...usage, total_tokens: entry.inputTokens + entry.outputTokens } })
    entry.state = 'answered'
    response.end('data: [DONE]\n\n')
  }

  const origin = await serveLocally(t, answer)
  return {
    url: `${origin}/v1`,
    requests,
    requestsOf: (tag) => requests.filter((request) => request.tag === tag),
    ...gates.forTests,
  }
}

const CHUNK = { id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1, model: 'planned' }

const delta = (fields: object, finish: string | null = null) => ({
  ...CHUNK,
  choices: [{ index: 0, delta: fields, finish_reason: finish }],
})

function planOf(messages: readonly { role: string; content?: unknown }[]): z.infer<typeof planShape> | null {
  const said = messages.find(({ role }) => role === 'user')?.content
  const plain = typeof said === 'string' ? said : z.array(z.looseObject({ text: z.string() })).parse(said)[0]?.text
  return plain === undefined ? null : (planShape.safeParse(jsonIn(plain)).data ?? null)
}

/** A text that is not a plan is refused: a model that breaks instead would be waited for. */
function jsonIn(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}
