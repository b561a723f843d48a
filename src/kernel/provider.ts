import { z } from 'zod'
import { instantField, jsonObject } from './fields.ts'

const providerKinds = ['offline', 'openai', 'openai-compatible', 'anthropic', 'google', 'google-vertex'] as const
const providerKind = z.enum(providerKinds)

export const providerName = z
  .string()
  .regex(/^[a-z0-9][a-z0-9._-]{0,62}$/, 'must be lower-case letters, digits, dots, dashes; at most 63 characters')
const baseUrl = z
  .string()
  .max(2_000)
  .refine((text) => {
    const url = URL.parse(text)
    return url !== null && /^https?:$/.test(url.protocol) && !url.username && !url.password
  }, 'must be an http or https URL without user or password')
const price = z.number().min(0).max(1_000_000)
const prices = z.record(z.string().min(1).max(200), z.strictObject({ input: price, output: price }))
const apiKey = z.string().min(1).max(16_384)

export const providerSchema = z.strictObject({
  name: providerName,
  kind: providerKind,
  base_url: z.string().nullable(),
  has_api_key: z.boolean().describe('Keys are write-only; this says whether one is stored.'),
  prices: prices.describe('USD per million tokens, by model.'),
  options: jsonObject.describe('Without headers and access_token, which are write-only.'),
  header_names: z.array(z.string()).describe('Values of options.headers are write-only; these are their names.'),
  has_access_token: z.boolean().describe('options.access_token is write-only; this says whether one is stored.'),
  source: z.enum(['api', 'environment', 'built-in']),
  created_at: instantField,
  updated_at: instantField,
})
export type Provider = z.infer<typeof providerSchema>

export const providerInput = z.strictObject({
  name: providerName,
  kind: providerKind,
  base_url: baseUrl.nullish(),
  api_key: apiKey.nullish(),
  prices: prices.optional(),
  options: jsonObject
    .optional()
    .describe(
      'headers and access_token are encrypted at rest and never answered. A PATCH that leaves them out keeps them; null removes them.',
    ),
})
export type ProviderInput = z.infer<typeof providerInput>

export const providerPatch = providerInput.omit({ name: true, kind: true }).partial()
export type ProviderPatch = z.infer<typeof providerPatch>

export const providerTestInput = z.strictObject({
  model: z
    .string()
    .min(1)
    .max(200)
    .optional()
    .describe('By default the first model with a price, else a small one of the maker, else the first of its list.'),
})
export const providerTestSchema = z.strictObject({
  ok: z.boolean(),
  model: z.string().nullable().describe('The model that was called.'),
  took_ms: z.int(),
  error: z.string().optional().describe('The reason in plain words, if `ok` is false.'),
})
export type ProviderTest = z.infer<typeof providerTestSchema>
