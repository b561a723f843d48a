import { z } from 'zod'
import type { Pool } from '../../db/pool.ts'
import { changeMemberRole, inviteMember, listMembers, removeMember } from '../../identity/members.ts'
import { invitedMemberSchema, memberInput, memberPatch, memberSchema } from '../../kernel/access.ts'
import { pageOf } from '../../kernel/fields.ts'
import { isInstanceAdmin } from '../../kernel/principal.ts'
import type { App } from '../http/app.ts'
import { actorOf, principalOf } from '../http/auth.ts'
import type { Create } from '../http/idempotency.ts'
import { routesOf } from '../http/routes-of.ts'
import { answers, listQuery, nothing, pathId, projectParams, requireId } from '../http/shapes.ts'

const openTo = routesOf('Members')
const memberParams = z.strictObject({ id: pathId, memberId: pathId })

export function addMemberRoutes(
  app: App,
  { pool, create, publicUrl }: { pool: Pool; create: Create; publicUrl: URL },
): void {
  app.post(
    '/api/projects/:id/members',
    openTo('admin', 'Invite a person; the answer has a one-time link for that person', {
      params: projectParams,
      body: memberInput,
      response: answers(201, invitedMemberSchema),
    }),
    (request, reply) =>
      create(request, reply, async (db) => {
        const { member, token } = await inviteMember(db, request.params.id, request.body, actorOf(request))
        return { ...member, invitation_url: new URL(`/invitations/${token}`, publicUrl).href }
      }),
  )

  app.get(
    '/api/projects/:id/members',
    openTo('viewer', 'List members and open invitations', {
      params: projectParams,
      querystring: listQuery,
      response: answers(200, pageOf(memberSchema)),
    }),
    (request) => listMembers(pool, request.params.id, request.query),
  )

  app.patch(
    '/api/projects/:id/members/:memberId',
    openTo('admin', "Change a member's role", {
      params: memberParams,
      body: memberPatch,
      response: answers(200, memberSchema),
    }),
    (request) =>
      changeMemberRole(pool, request.params.id, requireId(request.params.memberId, 'member'), {
        role: request.body.role,
        actor: actorOf(request),
        mayLeaveNoAdmin: isInstanceAdmin(principalOf(request)),
      }),
  )

  app.delete(
    '/api/projects/:id/members/:memberId',
    openTo('admin', 'Remove a member or withdraw an invitation', {
      params: memberParams,
      response: answers(204, nothing),
    }),
    async (request, reply) => {
      await removeMember(pool, request.params.id, requireId(request.params.memberId, 'member'), {
        actor: actorOf(request),
        mayLeaveNoAdmin: isInstanceAdmin(principalOf(request)),
      })
      return reply.code(204).send(null)
    },
  )
}
