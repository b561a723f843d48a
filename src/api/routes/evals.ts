import { z } from 'zod'
import type { Pool } from '../../db/pool.ts'
import { inTransaction } from '../../db/transaction.ts'
import { cancelEval } from '../../evals/cancel-eval.ts'
import { createEval } from '../../evals/create-eval.ts'
import { getEval, listEvals } from '../../evals/read-evals.ts'
import { evalInput, evalSchema, listedEvalSchema } from '../../kernel/eval.ts'
import { pageOf } from '../../kernel/fields.ts'
import type { App } from '../http/app.ts'
import { actorOf } from '../http/auth.ts'
import type { Create } from '../http/idempotency.ts'
import { routesOf } from '../http/routes-of.ts'
import { answers, emptyBody, listQuery, pathId, projectParams, requireId } from '../http/shapes.ts'

const openTo = routesOf('Evals')
const evalParams = z.strictObject({ id: pathId, evalId: pathId })

export function addEvalRoutes(app: App, { pool, createTogether }: { pool: Pool; createTogether: Create }): void {
  app.post(
    '/api/projects/:id/evals',
    openTo('member', 'Run the same cases on several system variants, and compare the outcomes', {
      description:
        'The variants are run as they are configured now. Runs of an eval make no tasks for people, and tools that would change something answer that nothing is applied.',
      params: projectParams,
      body: evalInput,
      response: answers(201, listedEvalSchema),
    }),
    (request, reply) =>
      createTogether(request, reply, (tx) => createEval(tx, request.params.id, request.body, actorOf(request))),
  )

  app.get(
    '/api/projects/:id/evals',
    openTo('member', 'List the evals, newest first', {
      params: projectParams,
      querystring: listQuery,
      response: answers(200, pageOf(listedEvalSchema)),
    }),
    (request) => listEvals(pool, request.params.id, request.query),
  )

  app.get(
    '/api/projects/:id/evals/:evalId',
    openTo('member', 'Read an eval: its progress, the outcome of every case, and the comparison so far', {
      isHeavy: true,
      params: evalParams,
      response: answers(200, evalSchema),
    }),
    (request) => getEval(pool, request.params.id, requireId(request.params.evalId, 'eval')),
  )

  app.post(
    '/api/projects/:id/evals/:evalId/cancel',
    openTo('member', 'Cancel an eval and its runs under way; an eval that has ended stays as it is', {
      params: evalParams,
      body: emptyBody,
      response: answers(200, listedEvalSchema),
    }),
    (request) => {
      const evalId = requireId(request.params.evalId, 'eval')
      return inTransaction(pool, (tx) => cancelEval(tx, request.params.id, evalId, actorOf(request)))
    },
  )
}
