// How flows ask a project's default model, beside the agents.
import type { Pool } from '../db/pool.ts'
import type { Ask } from '../flows/built-in-functions.ts'
import type { Decide } from '../flows/recommend-with-model.ts'
import { getSettings } from '../identity/settings.ts'
import type { ModelChoice } from '../kernel/agent.ts'
import type { Model, ModelRequest } from '../kernel/model-call.ts'
import { findProvider } from '../models/providers.ts'

const MOST_TOKENS = 4_096
const SYSTEM = 'You do what you are asked, carefully, and answer with the result alone.'

export interface ModelParts {
  pool: Pool
  resolveModel: (choice: ModelChoice) => Promise<Model | null>
}

/** Asks the project's default model, for leaves of flows that need no agent. Rejects where it does not answer. */
export function createAsk({ pool, resolveModel }: ModelParts): Ask {
  return async (projectId, prompt, signal) => {
    const { default_model: choice } = await getSettings(pool, projectId)
    return callFor(resolveModel, choice, { prompt }, signal)
  }
}

/** The same for an answer of a given shape. The offline model fills a shape with anything: it is not asked. */
export function createDecide({ pool, resolveModel }: ModelParts): Decide {
  return async (projectId, { prompt, answer }, signal) => {
    const { default_model: choice } = await getSettings(pool, projectId)
    const provider = await findProvider(pool, choice.provider)
    if (!provider || provider.kind === 'offline') return null
    return callFor(resolveModel, choice, { prompt, answerSchema: answer }, signal)
  }
}

async function callFor(
  resolveModel: ModelParts['resolveModel'],
  choice: Pick<ModelChoice, 'provider' | 'name'>,
  { prompt, ...shape }: { prompt: string } & Pick<ModelRequest, 'answerSchema'>,
  signal: AbortSignal,
): Promise<string> {
  const model = await resolveModel({ ...choice, max_output_tokens: MOST_TOKENS })
  if (!model) throw new Error(`There is no provider called "${choice.provider}".`)
  const outcome = await model.call(
    {
      prompt: [
        { role: 'system', content: SYSTEM },
        { role: 'user', content: [{ type: 'text', text: prompt }] },
      ],
      ...{ tools: [], toolChoice: 'auto', maxOutputTokens: MOST_TOKENS, ...shape },
    },
    { signal, onText: () => {} },
  )
  if (outcome.kind === 'answered' && outcome.finishReason === 'stop') return outcome.text
  throw new Error(outcome.kind === 'failed' ? outcome.message : 'The model did not end its answer.')
}
