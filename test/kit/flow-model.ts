// A provider on loopback for the agents of flows. Its answer depends only on the prompt, and it remembers the prompts.
// Tags in angle brackets tell the prompts of flow runs apart and do not change the answer.
import { createHash } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { z } from 'zod'
import { serveLocally } from './local-server.ts'
import type { Cleanup } from './process.ts'

export interface FlowModel {
  readonly url: string
  /** The number of times this prompt was sent. */
  asked(prompt: string): number
}

const THINKS_FOR_MS = 100

const requestShape = z.looseObject({
  messages: z.array(z.looseObject({ role: z.string(), content: z.unknown().optional() })),
  response_format: z.looseObject({ json_schema: z.looseObject({ name: z.string() }).optional() }).optional(),
})

export async function startFlowModel(t: Cleanup): Promise<FlowModel> {
  const counts = new Map<string, number>()

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { messages, response_format } = requestShape.parse(JSON.parse(await text(request)))
    const prompt = promptOf(messages)
    counts.set(prompt, (counts.get(prompt) ?? 0) + 1)
    await sleep(THINKS_FOR_MS)
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    const content = wordsFor(prompt, response_format?.json_schema?.name)
    const usage = { prompt_tokens: 10, completion_tokens: 10, total_tokens: 20 }
    for (const chunk of [
      { ...CHUNK, choices: [{ index: 0, delta: { content }, finish_reason: null }] },
      { ...CHUNK, choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] },
      { ...CHUNK, choices: [], usage },
    ]) {
      response.write(`data: ${JSON.stringify(chunk)}\n\n`)
    }
    response.end('data: [DONE]\n\n')
  }

  const origin = await serveLocally(t, answer)
  return {
    url: `${origin}/v1`,
    asked: (prompt) => counts.get(prompt) ?? 0,
  }
}

const CHUNK = { id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1, model: 'any' }
const TAG = /<[^<>]*>/g

function wordsFor(prompt: string, decision: string | undefined): string {
  const heard = createHash('sha256').update(prompt.replaceAll(TAG, '')).digest('hex').slice(0, 8)
  switch (decision) {
    case 'queen_plan': {
      const [tag = ''] = prompt.match(TAG) ?? []
      const shared = { workers: 1, title: 'A part' }
      const first = { ...shared, id: 'first', description: `${tag} Do the first part.`, depends_on: [] }
      const second = { ...shared, id: 'second', description: `${tag} Do the second part.`, depends_on: ['first'] }
      return JSON.stringify({ subtasks: [first, second] })
    }
    case 'queen_review':
      return JSON.stringify({ acceptable: true, problems: [], report: `Seen: ${heard}.` })
    case 'queen_adjust':
      return JSON.stringify({ action: 'wait' })
    default:
      return `Heard: ${heard}.`
  }
}

function promptOf(messages: readonly { role: string; content?: unknown }[]): string {
  const said = messages.find(({ role }) => role === 'user')?.content
  return typeof said === 'string' ? said : (z.array(z.looseObject({ text: z.string() })).parse(said)[0]?.text ?? '')
}
