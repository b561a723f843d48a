import { z } from 'zod'
import { type AuditQuery, listAudit } from '../../audit/list.ts'
import { verifyAudit } from '../../audit/verify.ts'
import type { Pool } from '../../db/pool.ts'
import { findActors, nameActors } from '../../identity/actors.ts'
import { type AuditEntry, auditEntrySchema, auditVerdictSchema } from '../../kernel/access.ts'
import { type Page, pageOf } from '../../kernel/fields.ts'
import type { App } from '../http/app.ts'
import { routesOf } from '../http/routes-of.ts'
import { answers, listQuery, projectParams } from '../http/shapes.ts'
import { nameTargets } from './audit-targets.ts'

const openTo = routesOf('Audit')
const auditQuery = listQuery.extend({
  action: z
    .string()
    .min(1)
    .max(200)
    .optional()
    .describe('An action, such as run.start, or the words before a point: run is run.start, run.cancel and so on.'),
  actor: z
    .string()
    .min(1)
    .max(254)
    .optional()
    .describe(
      'An id, the e-mail address of a person, the name of a key, “Instance admin”, or, in a project, the name of an agent.',
    ),
})

export function addAuditRoutes(app: App, { pool }: { pool: Pool }): void {
  app.get(
    '/api/projects/:id/audit',
    openTo('admin', 'List the audit log of the project, newest first', {
      params: projectParams,
      querystring: auditQuery,
      response: answers(200, pageOf(auditEntrySchema)),
    }),
    (request) => listNamed(pool, { projectId: request.params.id, ...request.query }),
  )

  app.get(
    '/api/audit',
    openTo('instance', 'List the audit log of the whole instance, newest first', {
      querystring: auditQuery,
      response: answers(200, pageOf(auditEntrySchema)),
    }),
    (request) => listNamed(pool, { projectId: null, ...request.query }),
  )

  app.get(
    '/api/audit/verify',
    openTo('instance', 'Recompute the chain over the audit log and say whether it holds', {
      response: answers(200, auditVerdictSchema),
    }),
    () => verifyAudit(pool),
  )
}

async function listNamed(
  pool: Pool,
  { actor, ...query }: Omit<AuditQuery, 'actors'> & { actor?: string | undefined },
): Promise<Page<AuditEntry>> {
  const actors = actor === undefined ? undefined : await findActors(pool, query.projectId, actor)
  const { items, next_cursor } = await listAudit(pool, { ...query, actors })
  return { items: await nameTargets(pool, await nameActors(pool, items)), next_cursor }
}
