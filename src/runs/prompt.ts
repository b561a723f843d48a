import { decisionOf } from '../kernel/decision.ts'
import { defined } from '../kernel/defined.ts'
import type { ModelRequest } from '../kernel/model-call.ts'
import { estimateInputTokens } from '../models/estimate-tokens.ts'
import type { OwnedRun, Question } from './owned-run.ts'

const WIND_DOWN = {
  step_limit:
    'You have used all the steps you were given. Do not call tools. Summarise what you did, what you found and what is left to do.',
  timeout: 'The time is up. Do not call tools. Summarise what you did, what you found and what is left to do.',
} as const

const LOOP =
  'You work in rounds: each round goes on from what the earlier ones produced. Call finish_loop when the work is done.'

/** The request for the next step. The history is the state's own array: nothing is copied, however long it is. */
export function nextRequest(owned: OwnedRun, windDown: 'step_limit' | 'timeout' | null): ModelRequest {
  const { state, agent, stage, question } = owned
  if (question && !windDown) return questionRequest(owned, question)
  state.messages[0] = { role: 'system', content: systemText(owned, windDown) }
  const choice = agent.model
  const { answer } = owned.run
  return defined({
    prompt: state.messages,
    tools: stage.faces,
    toolChoice: windDown ? 'none' : 'auto',
    maxOutputTokens: roomForAnswer(owned),
    temperature: choice?.temperature,
    answerSchema: answer && !windDown ? answer : undefined,
  })
}

/** A decision is asked for apart from the history of the work, and without tools. */
function questionRequest(owned: OwnedRun, { name, prompt }: Question): ModelRequest {
  const { temperature } = owned.agent.model ?? {}
  return defined({
    prompt,
    tools: [],
    toolChoice: 'auto',
    maxOutputTokens: roomForAnswer(owned),
    temperature,
    answerSchema: name === null ? undefined : decisionOf(name),
  })
}

/** A provider refuses a request whose prompt and answer could exceed the context together. */
function roomForAnswer(owned: OwnedRun): number {
  const wanted = owned.agent.model?.max_output_tokens ?? 4_096
  const left = owned.model.contextTokens - promptTokens(owned)
  return Math.max(1, Math.min(wanted, left))
}

/** The text goes in as instructions of the call: a system message in mid-conversation is an error on Gemini. */
function systemText({ agent, prompt, state }: OwnedRun, windDown: 'step_limit' | 'timeout' | null): string {
  const step = agent.flow_type === 'sequential' ? agent.steps[state.stage]?.prompt : undefined
  const parts = [
    prompt,
    step,
    agent.flow_type === 'loop' ? LOOP : undefined,
    windDown ? WIND_DOWN[windDown] : undefined,
  ]
  return parts.filter((part) => part !== undefined && part !== '').join('\n\n')
}

/** The tokens that the provider counted, and an estimate for the messages since. */
export function promptTokens({ state, stage, question }: OwnedRun): number {
  if (question) return estimateInputTokens({ prompt: question.prompt, tools: [] })
  const { countedTokens, uncountedFrom, messages } = state
  if (countedTokens === 0) return estimateInputTokens({ prompt: messages, tools: stage.faces })
  if (uncountedFrom >= messages.length) return countedTokens
  return countedTokens + estimateInputTokens({ prompt: messages.slice(uncountedFrom), tools: [] })
}
