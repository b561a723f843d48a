// LangGraph's ReAct agent with its PostgreSQL checkpointer does the same steps. It has its defaults, and as many
// connections as our side; `messages` streams the parts of an answer, as our runs do.
import type { CallbackManagerForLLMRun } from '@langchain/core/callbacks/manager'
import { BaseChatModel } from '@langchain/core/language_models/chat_models'
import { AIMessageChunk, type BaseMessage } from '@langchain/core/messages'
import { ChatGenerationChunk, type ChatResult } from '@langchain/core/outputs'
import { tool } from '@langchain/core/tools'
import { createReactAgent } from '@langchain/langgraph/prebuilt'
import { PostgresSaver } from '@langchain/langgraph-checkpoint-postgres'
import pg from 'pg'
import { timeInFlight } from '../kit/rounds.ts'
import { answerQuestions } from '../kit/side.ts'
import { argumentsOf, lookUp, type Script, TOOL, textPart } from './instant-model.ts'

class InstantChatModel extends BaseChatModel {
  readonly #script: Script

  constructor(script: Script) {
    super({})
    this.#script = script
  }

  override _llmType(): string {
    return 'instant'
  }

  override bindTools(): this {
    return this
  }

  override async *_streamResponseChunks(
    messages: BaseMessage[],
    _options: this['ParsedCallOptions'],
    runManager?: CallbackManagerForLLMRun,
  ): AsyncGenerator<ChatGenerationChunk> {
    const step = messages.filter((message) => message.getType() === 'ai').length + 1
    for (const chunk of chunksOf(step, this.#script)) {
      yield chunk
      await runManager?.handleLLMNewToken(chunk.text, undefined, undefined, undefined, undefined, { chunk })
    }
  }

  override async _generate(): Promise<ChatResult> {
    throw new Error('this model only streams')
  }
}

function* chunksOf(step: number, { steps, parts }: Script): Generator<ChatGenerationChunk> {
  for (let index = 0; index < parts; index++) {
    const text = textPart(index)
    yield new ChatGenerationChunk({ text, message: new AIMessageChunk({ content: text }) })
  }
  if (step === steps) return
  const call = { name: TOOL.name, args: JSON.stringify(argumentsOf(step)), id: `call_${step}`, index: 0 }
  const asking = new AIMessageChunk({ content: '', tool_call_chunks: [{ ...call, type: 'tool_call_chunk' }] })
  yield new ChatGenerationChunk({ text: '', message: asking })
}

const [url = '', poolSize = ''] = process.argv.slice(2)
const saver = new PostgresSaver(new pg.Pool({ connectionString: url, max: Number(poolSize) }))
await saver.setup()
let threads = 0

answerQuestions<{ script: Script; count: number; inFlight: number }>(async ({ script, count, inFlight }) => {
  const lookUpTool = tool(async () => JSON.stringify(lookUp()), {
    name: TOOL.name,
    description: TOOL.description,
    schema: TOOL.inputSchema,
  })
  const agent = createReactAgent({ llm: new InstantChatModel(script), tools: [lookUpTool], checkpointer: saver })
  const input = { messages: [{ role: 'user', content: 'Look it up.' }] }
  const first = threads
  threads += count
  const settingsOf = (index: number) => ({ configurable: { thread_id: `thread ${first + index}` } })
  const seconds = await timeInFlight(count, inFlight, async (index) => {
    const options = { ...settingsOf(index), streamMode: 'messages' as const, recursionLimit: 2 * script.steps + 2 }
    let parts = 0
    for await (const _part of await agent.stream(input, options)) parts++
    if (parts < script.steps * script.parts) throw new Error(`only ${parts} parts arrived`)
  })
  await timeInFlight(count, Number(poolSize), async (index) => {
    const { values } = await agent.getState(settingsOf(index))
    const kept: unknown = values.messages?.length
    if (kept !== 2 * script.steps) throw new Error(`a thread kept ${kept} messages`)
  })
  return { seconds }
})
