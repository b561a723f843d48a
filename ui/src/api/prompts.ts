// The prompt library and the systems that use it.
import { queryOptions } from '@tanstack/react-query'
import type { PromptDiff, PromptMessage } from '../../../src/kernel/prompt.ts'
import type { SystemConfig } from '../../../src/kernel/supervisor.ts'
import { get, post, put, remove } from './client.ts'
import { ALL, LONGEST_PAGE, pagedQuery, readAll } from './pages.ts'
import type { ListedPrompt, ListedSystem, Prompt, System, Version } from './prompt-shapes.ts'
import { projectPath } from './queries.ts'

export interface VariantKey {
  projectId: string
  promptId: string
  variantId: string
}

const VERSIONS = 20

export const variantPath = ({ projectId, promptId, variantId }: VariantKey, rest = ''): string =>
  projectPath(projectId, `/prompts/${encodeURIComponent(promptId)}/variants/${encodeURIComponent(variantId)}${rest}`)

/** All variants, deleted ones too. */
export const promptsQuery = (projectId: string) =>
  queryOptions({
    queryKey: ['prompt', projectId, 'list'],
    queryFn: () =>
      readAll<ListedPrompt>(projectPath(projectId, '/prompts'), { include_deleted: true, limit: LONGEST_PAGE }, ALL),
  })

const keyOf = ({ projectId, promptId, variantId }: VariantKey) => ['prompt', projectId, promptId, variantId] as const

export const promptQuery = (key: VariantKey) =>
  queryOptions({ queryKey: [...keyOf(key), 'text'], queryFn: () => get<Prompt>(variantPath(key)) })

export const versionsQuery = (key: VariantKey) =>
  pagedQuery<Version>([...keyOf(key), 'versions'], variantPath(key, '/versions'), { limit: VERSIONS })

export const versionDiffQuery = (key: VariantKey, from: number, to: number) =>
  queryOptions({
    queryKey: [...keyOf(key), 'diff', from, to],
    queryFn: () => get<PromptDiff>(variantPath(key, '/diff'), { query: { from, to } }),
    // Versions never change.
    staleTime: Number.POSITIVE_INFINITY,
  })

export const systemsQuery = (projectId: string) =>
  queryOptions({
    queryKey: ['system', projectId, 'list'],
    queryFn: () => get<{ items: ListedSystem[] }>(projectPath(projectId, '/systems')),
  })

export const savePrompt = (key: VariantKey, messages: PromptMessage[], expectedVersion: number): Promise<Prompt> =>
  put(variantPath(key), { messages, expected_version: expectedVersion })

export const rollBack = (key: VariantKey, version: number, expectedVersion: number): Promise<Prompt> =>
  post(variantPath(key, '/rollback'), { version, expected_version: expectedVersion })

export const deleteVariant = (key: VariantKey): Promise<null> => remove(variantPath(key))

export const saveSystem = (projectId: string, variant: string, config: SystemConfig): Promise<System> =>
  put(projectPath(projectId, `/systems/${encodeURIComponent(variant)}`), config)
