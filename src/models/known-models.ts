// The context sizes of well-known models. An agent's own `context_tokens` comes first.

/** A longer beginning stands before the shorter one that it starts with. */
const CONTEXT_TOKENS: readonly (readonly [prefix: string, tokens: number])[] = [
  ['gpt-3.5', 16_000],
  ['gpt-4o', 128_000],
  ['gpt-4-turbo', 128_000],
  ['gpt-4.1', 1_000_000],
  ['gpt-4', 8_000],
  ['gpt-5', 400_000],
  ['o1', 200_000],
  ['o3', 200_000],
  ['o4', 200_000],
  ['claude', 200_000],
  ['gemini', 1_000_000],
]
const DEFAULT_CONTEXT_TOKENS = 128_000

/** Routers put the maker before the name: `anthropic/claude-…`. */
export function contextTokensOf(modelName: string): number {
  const plain = modelName.slice(modelName.lastIndexOf('/') + 1).toLowerCase()
  return CONTEXT_TOKENS.find(([prefix]) => plain.startsWith(prefix))?.[1] ?? DEFAULT_CONTEXT_TOKENS
}
