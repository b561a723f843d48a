// The prompt library of this process: its own tables, or another service that every run asks.
import type { PromptServices } from '../api/http/run-services.ts'
import type { Pool } from '../db/pool.ts'
import type { Egress } from '../egress/egress.ts'
import { DEFAULT_VARIANT } from '../kernel/prompt.ts'
import { createPromptLibrary, type PromptLibrary } from '../prompts/library.ts'
import { createRemoteLibrary } from '../prompts/remote-library.ts'
import { loadShippedPrompts } from '../prompts/shipped-prompts.ts'
import { PROMPT_CHANNEL } from '../prompts/write-prompt.ts'
import type { Companion } from '../runs/companions.ts'
import type { RunDeps } from '../runs/owned-run.ts'
import type { Config } from './config.ts'

export interface OpenPrompts {
  library: PromptLibrary
  /** The prompt of an agent, in the variant of this process. */
  resolve: RunDeps['resolvePrompt']
  services: PromptServices
  /** Receives notices of changes that other processes made. */
  companion: Companion
}

export async function openPrompts({
  config,
  pool,
  egress,
}: {
  config: Pick<Config, 'systemVariant' | 'prompts'>
  pool: Pool
  egress: Egress
}): Promise<OpenPrompts> {
  const shipped = await loadShippedPrompts()
  const own = createPromptLibrary({ db: pool, shipped })
  const library = config.prompts ? createRemoteLibrary({ ...config.prompts, fetch: egress.fetch('trusted') }) : own
  const variantId = config.systemVariant ?? DEFAULT_VARIANT
  return {
    library,
    resolve: async (projectId, promptId, named = variantId) => ({
      ...(await library.get(projectId, promptId, named)),
      variantId: named,
    }),
    services: { shipped, forget: own.forget, systemVariant: config.systemVariant },
    companion: {
      onNotification: (channel, payload) => {
        if (channel === PROMPT_CHANNEL) own.forget(payload)
      },
      onListening: own.forgetAll,
    },
  }
}
