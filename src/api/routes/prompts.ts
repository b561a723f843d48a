import { z } from 'zod'
import type { Pool } from '../../db/pool.ts'
import { inTransaction } from '../../db/transaction.ts'
import { pageOf } from '../../kernel/fields.ts'
import {
  listedPromptSchema,
  promptAnswer,
  promptDiffSchema,
  promptInput,
  promptRequest,
  promptSchema,
  promptVersionSchema,
  rollbackInput,
} from '../../kernel/prompt.ts'
import { diffVersions } from '../../prompts/diff-prompt.ts'
import {
  getPrompt,
  getVersion,
  latestVersion,
  listPrompts,
  listVersions,
  type PromptKey,
} from '../../prompts/prompts.ts'
import { deletePrompt, noticeOf, rollBackPrompt, savePrompt } from '../../prompts/write-prompt.ts'
import { actorOf, projectOf } from '../auth.ts'
import type { Idempotency } from '../idempotency.ts'
import type { PromptServices } from '../run-services.ts'
import type { App } from '../server.ts'
import { answers, listQuery, nothing, pathId, projectParams, wholeNumber } from '../shapes.ts'

const tags = ['Prompts']
const variant = '/api/projects/:id/prompts/:prompt_id/variants/:variant_id'
const variantParams = z.strictObject({ id: pathId, prompt_id: z.string(), variant_id: z.string() })
const versionQuery = z
  .preprocess(wholeNumber, z.int().min(1).max(1_000_000_000))
  .optional()
  .meta({ type: 'integer', minimum: 1 })
const diffQuery = z.strictObject({
  from: versionQuery.describe('By default the version before `to`.'),
  to: versionQuery.describe('By default the newest version.'),
})

const keyOf = ({ id, prompt_id, variant_id }: z.infer<typeof variantParams>): PromptKey => ({
  projectId: id,
  promptId: prompt_id,
  variantId: variant_id,
})

interface PromptRoutes {
  pool: Pool
  once: Idempotency['once']
  prompts: PromptServices
}

export function addPromptRoutes(app: App, { pool, once, prompts: { shipped, forget } }: PromptRoutes): void {
  app.get(
    '/api/projects/:id/prompts',
    {
      config: { access: 'viewer' },
      schema: {
        tags,
        summary: 'List the prompts and their variants, by name',
        params: projectParams,
        querystring: listQuery,
        response: answers(200, pageOf(listedPromptSchema)),
      },
    },
    (request) => listPrompts(pool, shipped, request.params.id, request.query),
  )

  app.get(
    variant,
    {
      config: { access: 'viewer' },
      schema: {
        tags,
        summary: 'Read a variant of a prompt',
        params: variantParams,
        response: answers(200, promptSchema),
      },
    },
    (request) => getPrompt(pool, shipped, keyOf(request.params)),
  )

  app.put(
    variant,
    {
      config: { access: 'admin' },
      schema: {
        tags,
        summary: 'Save the next version of a variant, or a new one; earlier versions stay',
        params: variantParams,
        body: promptInput,
        response: answers(200, promptSchema),
      },
    },
    async (request) => {
      const key = keyOf(request.params)
      const write = { shipped, actor: actorOf(request) }
      const { kept } = await once(request, (tx) => savePrompt(tx, key, request.body, write))
      forget(noticeOf(key))
      return kept
    },
  )

  app.delete(
    variant,
    {
      config: { access: 'admin' },
      schema: {
        tags,
        summary: 'Delete a variant; its versions stay, and a rollback brings it back',
        params: variantParams,
        response: answers(204, nothing),
      },
    },
    async (request, reply) => {
      const key = keyOf(request.params)
      await inTransaction(pool, (tx) => deletePrompt(tx, key, { shipped, actor: actorOf(request) }))
      forget(noticeOf(key))
      return reply.code(204).send(null)
    },
  )

  app.get(
    `${variant}/versions`,
    {
      config: { access: 'viewer', isHeavy: true },
      schema: {
        tags,
        summary: 'List the versions of a variant, newest first, also after its deletion',
        params: variantParams,
        querystring: listQuery,
        response: answers(200, pageOf(promptVersionSchema)),
      },
    },
    (request) => listVersions(pool, shipped, keyOf(request.params), request.query),
  )

  app.get(
    `${variant}/diff`,
    {
      config: { access: 'viewer', isHeavy: true },
      schema: {
        tags,
        summary: 'Show the lines in which two versions differ',
        params: variantParams,
        querystring: diffQuery,
        response: answers(200, promptDiffSchema),
      },
    },
    async (request) => {
      const key = keyOf(request.params)
      const { to = await latestVersion(pool, shipped, key) } = request.query
      const { from = Math.max(1, to - 1) } = request.query
      return diffVersions(await getVersion(pool, shipped, key, from), await getVersion(pool, shipped, key, to))
    },
  )

  app.post(
    `${variant}/rollback`,
    {
      config: { access: 'admin' },
      schema: {
        tags,
        summary: 'Make the text of an earlier version the newest version',
        params: variantParams,
        body: rollbackInput,
        response: answers(200, promptSchema),
      },
    },
    async (request) => {
      const key = keyOf(request.params)
      const write = { shipped, actor: actorOf(request) }
      const { kept } = await once(request, (tx) => rollBackPrompt(tx, key, request.body, write))
      forget(noticeOf(key))
      return kept
    },
  )

  app.post(
    '/v1/prompts/get',
    {
      config: { access: 'viewer' },
      schema: {
        tags,
        summary: 'Fetch a prompt for use',
        description: 'The project is the key’s. The instance admin and signed-in people name it in x-project-id.',
        body: promptRequest,
        response: answers(200, promptAnswer),
      },
    },
    async (request) => {
      const { prompt_id: promptId, variant_id: variantId } = request.body
      const { messages } = await getPrompt(pool, shipped, { projectId: projectOf(request), promptId, variantId })
      return { prompt: { id: promptId, variant: { id: variantId, messages } } }
    },
  )
}
