import { listAudit } from '../../audit/list.ts'
import { verifyAudit } from '../../audit/verify.ts'
import type { Pool } from '../../db/pool.ts'
import { auditEntrySchema, auditVerdictSchema } from '../../kernel/access.ts'
import { pageOf } from '../../kernel/fields.ts'
import type { App } from '../server.ts'
import { answers, listQuery, projectParams } from '../shapes.ts'

const tags = ['Audit']

export function addAuditRoutes(app: App, { pool }: { pool: Pool }): void {
  app.get(
    '/api/projects/:id/audit',
    {
      config: { access: 'admin' },
      schema: {
        tags,
        summary: 'Who did what in the project, newest first',
        params: projectParams,
        querystring: listQuery,
        response: answers(200, pageOf(auditEntrySchema)),
      },
    },
    (request) => listAudit(pool, { projectId: request.params.id, ...request.query }),
  )

  app.get(
    '/api/audit',
    {
      config: { access: 'instance' },
      schema: {
        tags,
        summary: 'Who did what on the whole instance, newest first',
        querystring: listQuery,
        response: answers(200, pageOf(auditEntrySchema)),
      },
    },
    (request) => listAudit(pool, { projectId: null, ...request.query }),
  )

  app.get(
    '/api/audit/verify',
    {
      config: { access: 'instance' },
      schema: {
        tags,
        summary: 'Recompute the chain over the audit log and say whether it holds',
        response: answers(200, auditVerdictSchema),
      },
    },
    () => verifyAudit(pool),
  )
}
