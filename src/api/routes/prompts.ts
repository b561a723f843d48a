import type { FastifyRequest } from 'fastify'
import { z } from 'zod'
import type { Db, Pool } from '../../db/pool.ts'
import { inTransaction } from '../../db/transaction.ts'
import { nameActors } from '../../identity/actors.ts'
import { type Page, pageOf } from '../../kernel/fields.ts'
import type { Actor } from '../../kernel/principal.ts'
import {
  listedPromptSchema,
  type Prompt,
  promptAnswer,
  promptDiffSchema,
  promptInput,
  promptRequest,
  promptSchema,
  promptVersionSchema,
  rollbackInput,
} from '../../kernel/prompt.ts'
import {
  getPrompt,
  getVersion,
  latestVersion,
  listPrompts,
  listVersions,
  type PromptKey,
} from '../../prompts/prompts.ts'
import type { ShippedPrompts } from '../../prompts/shipped-prompts.ts'
import { deletePrompt, noticeOf, rollBackPrompt, savePrompt } from '../../prompts/write-prompt.ts'
import type { App } from '../http/app.ts'
import { actorOf, projectOf } from '../http/auth.ts'
import type { Idempotency } from '../http/idempotency.ts'
import { routesOf } from '../http/routes-of.ts'
import type { PromptServices } from '../http/run-services.ts'
import { answers, listQuery, nothing, pathId, projectParams, wholeNumber } from '../http/shapes.ts'

const openTo = routesOf('Prompts')
const variant = '/api/projects/:id/prompts/:prompt_id/variants/:variant_id'
const variantParams = z.strictObject({ id: pathId, prompt_id: z.string(), variant_id: z.string() })
const versionQuery = wholeNumber({ most: 999_999_999 }).optional().meta({ type: 'integer', minimum: 1 })
const promptQuery = listQuery.extend({
  include_deleted: z
    .enum(['true', 'false'])
    .default('false')
    .describe('With true, variants that were deleted are listed, too.'),
})
const diffQuery = z.strictObject({
  from: versionQuery.describe('The older version; by default the version before `to`.'),
  to: versionQuery.describe('The newer version; by default the newest one.'),
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

export function addPromptRoutes(app: App, options: PromptRoutes): void {
  const { pool, prompts } = options
  const { shipped, forget } = prompts
  app.get(
    '/api/projects/:id/prompts',
    openTo('viewer', 'List the prompts and their variants, by name', {
      params: projectParams,
      querystring: promptQuery,
      response: answers(200, pageOf(listedPromptSchema)),
    }),
    async (request) => {
      const { include_deleted, ...page } = request.query
      const query = { ...page, withDeleted: include_deleted === 'true' }
      return named(pool, await listPrompts(pool, shipped, request.params.id, query))
    },
  )

  app.get(
    variant,
    openTo('viewer', 'Read a variant of a prompt', { params: variantParams, response: answers(200, promptSchema) }),
    async (request) => namedOne(pool, await getPrompt(pool, shipped, keyOf(request.params))),
  )

  app.put(
    variant,
    openTo('admin', 'Save the next version of a variant, or a new variant; earlier versions stay', {
      params: variantParams,
      body: promptInput,
      response: answers(200, promptSchema),
    }),
    (request) => written(request, options, keyOf(request.params), request.body, savePrompt),
  )

  app.delete(
    variant,
    openTo('admin', 'Delete a variant; its versions stay, and a rollback brings it back', {
      params: variantParams,
      response: answers(204, nothing),
    }),
    async (request, reply) => {
      const key = keyOf(request.params)
      await inTransaction(pool, (tx) => deletePrompt(tx, key, { shipped, actor: actorOf(request) }))
      forget(noticeOf(key))
      return reply.code(204).send(null)
    },
  )

  addVersionRoutes(app, options)

  app.post(
    '/v1/prompts/get',
    openTo('viewer', 'Fetch a prompt for use', {
      description: 'The project is the key’s. The instance admin and signed-in people name it in x-project-id.',
      body: promptRequest,
      response: answers(200, promptAnswer),
    }),
    async (request) => {
      const { prompt_id: promptId, variant_id: variantId } = request.body
      const { messages } = await getPrompt(pool, shipped, { projectId: projectOf(request), promptId, variantId })
      return { prompt: { id: promptId, variant: { id: variantId, messages } } }
    },
  )
}

const named = async <Item extends Pick<Prompt, 'actor'>>(pool: Pool, { items, next_cursor }: Page<Item>) => ({
  items: await nameActors(pool, items),
  next_cursor,
})

async function namedOne(pool: Pool, prompt: Prompt) {
  const [shown] = await nameActors(pool, [prompt])
  if (!shown) throw new Error('a prompt was lost')
  return shown
}

/** Writes the next version of a prompt; processes that keep the prompt forget it then. */
async function written<Input>(
  request: FastifyRequest,
  { pool, once, prompts: { shipped, forget } }: PromptRoutes,
  key: PromptKey,
  input: Input,
  write: (tx: Db, key: PromptKey, input: Input, by: { shipped: ShippedPrompts; actor: Actor }) => Promise<Prompt>,
) {
  const { kept } = await once(request, (tx) => write(tx, key, input, { shipped, actor: actorOf(request) }))
  forget(noticeOf(key))
  return namedOne(pool, kept)
}

function addVersionRoutes(app: App, options: PromptRoutes): void {
  const { pool, prompts } = options
  const { shipped } = prompts
  app.get(
    `${variant}/versions`,
    openTo('viewer', 'List the versions of a variant, newest first, also after its deletion', {
      isHeavy: true,
      params: variantParams,
      querystring: listQuery,
      response: answers(200, pageOf(promptVersionSchema)),
    }),
    async (request) => named(pool, await listVersions(pool, shipped, keyOf(request.params), request.query)),
  )

  app.get(
    `${variant}/diff`,
    openTo('viewer', 'Show the lines in which two versions differ', {
      isHeavy: true,
      params: variantParams,
      querystring: diffQuery,
      response: answers(200, promptDiffSchema),
    }),
    async (request) => {
      const key = keyOf(request.params)
      const { to = await latestVersion(pool, shipped, key) } = request.query
      const { from = Math.max(1, to - 1) } = request.query
      // Loaded here, because few people ask for it: 17 ms at a start (measured).
      const { diffVersions } = await import('../../prompts/diff-prompt.ts')
      return diffVersions(await getVersion(pool, shipped, key, from), await getVersion(pool, shipped, key, to))
    },
  )

  app.post(
    `${variant}/rollback`,
    openTo('admin', 'Make the text of an earlier version the newest version', {
      params: variantParams,
      body: rollbackInput,
      response: answers(200, promptSchema),
    }),
    (request) => written(request, options, keyOf(request.params), request.body, rollBackPrompt),
  )
}
