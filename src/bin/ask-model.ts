import type { Pool } from '../db/pool.ts'
import type { Ask } from '../flows/built-in-functions.ts'
import { getSettings } from '../identity/settings.ts'
import type { ModelChoice } from '../kernel/agent.ts'
import type { Model } from '../kernel/model-call.ts'

const MOST_TOKENS = 4_096
const SYSTEM = 'You do what you are asked, carefully, and answer with the result alone.'

/** Asks the project's default model, for leaves of flows that need no agent. Rejects where it does not answer. */
export function createAsk({
  pool,
  resolveModel,
}: {
  pool: Pool
  resolveModel: (choice: ModelChoice) => Promise<Model | null>
}): Ask {
  return async (projectId, prompt, signal) => {
    const { default_model: choice } = await getSettings(pool, projectId)
    const model = await resolveModel({ ...choice, max_output_tokens: MOST_TOKENS })
    if (!model) throw new Error(`There is no provider called "${choice.provider}".`)
    const outcome = await model.call(
      {
        prompt: [
          { role: 'system', content: SYSTEM },
          { role: 'user', content: [{ type: 'text', text: prompt }] },
        ],
        ...{ tools: [], toolChoice: 'auto', maxOutputTokens: MOST_TOKENS },
      },
      { signal, onText: () => {} },
    )
    if (outcome.kind === 'answered' && outcome.finishReason === 'stop') return outcome.text
    throw new Error(outcome.kind === 'failed' ? outcome.message : 'The model did not end its answer.')
  }
}
