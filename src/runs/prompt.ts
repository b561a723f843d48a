import { decisionOf } from '../kernel/decision.ts'
import type { ModelRequest } from '../kernel/model-call.ts'
import { estimateInputTokens } from '../models/estimate-tokens.ts'
import type { Question, Session } from './session.ts'

const WIND_DOWN = {
  step_limit:
    'You have used all the steps you were given. Do not call tools. Summarise what you did, what you found and what is left to do.',
  timeout: 'The time is up. Do not call tools. Summarise what you did, what you found and what is left to do.',
} as const

const LOOP =
  'You work in rounds: each round goes on from what the earlier ones produced. Call finish_loop when the work is done.'

/** The request for the next step. The history is the state's own array: nothing is copied, however long it is. */
export function nextRequest(session: Session, windDown: 'step_limit' | 'timeout' | null): ModelRequest {
  const { state, agent, stage, question } = session
  if (question && !windDown) return questionRequest(session, question)
  state.messages[0] = { role: 'system', content: systemText(session, windDown) }
  const choice = agent.model
  const { answer } = session.run
  return {
    prompt: state.messages,
    tools: stage.faces,
    toolChoice: windDown ? 'none' : 'auto',
    maxOutputTokens: roomForAnswer(session),
    ...(choice?.temperature === undefined ? {} : { temperature: choice.temperature }),
    ...(answer && !windDown ? { answerSchema: answer } : {}),
  }
}

/** A decision is asked for apart from the history of the work, and without tools. */
function questionRequest(session: Session, { name, prompt }: Question): ModelRequest {
  const { temperature } = session.agent.model ?? {}
  return {
    prompt,
    tools: [],
    toolChoice: 'auto',
    maxOutputTokens: roomForAnswer(session),
    ...(temperature === undefined ? {} : { temperature }),
    ...(name === null ? {} : { answerSchema: decisionOf(name) }),
  }
}

/** A provider refuses a request whose prompt and answer could exceed the context together. */
function roomForAnswer(session: Session): number {
  const wanted = session.agent.model?.max_output_tokens ?? 4_096
  const left = session.model.contextTokens - promptTokens(session)
  return Math.max(1, Math.min(wanted, left))
}

/** The text goes in as instructions of the call: a system message in mid-conversation is an error on Gemini. */
function systemText({ agent, prompt, state }: Session, windDown: 'step_limit' | 'timeout' | null): string {
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
export function promptTokens({ state, stage, question }: Session): number {
  if (question) return estimateInputTokens({ prompt: question.prompt, tools: [] })
  const { countedTokens, uncountedFrom, messages } = state
  if (countedTokens === 0) return estimateInputTokens({ prompt: messages, tools: stage.faces })
  if (uncountedFrom >= messages.length) return countedTokens
  return countedTokens + estimateInputTokens({ prompt: messages.slice(uncountedFrom), tools: [] })
}
