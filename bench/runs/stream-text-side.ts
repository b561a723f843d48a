// The bare loop of the AI SDK over the same model and the same tool. It stores nothing.
import { jsonSchema, stepCountIs, streamText, tool } from 'ai'
import { timeInFlight } from '../kit/rounds.ts'
import { answerQuestions } from '../kit/side.ts'
import { createInstantModel, lookUp, type Script, TOOL } from './instant-model.ts'

answerQuestions<{ script: Script; count: number; inFlight: number }>(async ({ script, count, inFlight }) => {
  const model = createInstantModel(script)
  const tools = {
    [TOOL.name]: tool({
      description: TOOL.description,
      inputSchema: jsonSchema<{ topic: string; page: number }>({ ...TOOL.inputSchema, required: ['topic', 'page'] }),
      execute: async () => lookUp(),
    }),
  }
  const seconds = await timeInFlight(count, inFlight, async () => {
    const result = streamText({ model, tools, prompt: 'Look it up.', stopWhen: stepCountIs(script.steps) })
    await result.consumeStream()
    const steps = await result.steps
    if (steps.length !== script.steps) throw new Error(`the loop made ${steps.length} steps`)
  })
  return { seconds }
})
