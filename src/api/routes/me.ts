import type { Pool } from '../../db/pool.ts'
import { getProject } from '../../identity/projects.ts'
import { getUser, projectsOf } from '../../identity/users.ts'
import { meSchema } from '../../kernel/access.ts'
import { unauthenticated } from '../../kernel/errors.ts'
import type { Principal } from '../../kernel/principal.ts'
import { principalOf } from '../auth.ts'
import type { App } from '../server.ts'
import { answers } from '../shapes.ts'

export const meAnswers = answers(200, meSchema)

export function addMeRoutes(app: App, { pool }: { pool: Pool }): void {
  app.get(
    '/api/me',
    {
      config: { access: 'authenticated' },
      schema: { tags: ['Sign-in'], summary: 'Whose credentials these are', response: meAnswers },
    },
    (request) => describeMe(pool, principalOf(request)),
  )
}

export async function describeMe(pool: Pool, principal: Principal) {
  switch (principal.type) {
    case 'instance_admin':
      return { type: principal.type, id: null, email: null, name: 'Instance admin', instance_admin: true, projects: [] }
    case 'key': {
      const { id, name } = await getProject(pool, principal.projectId)
      const projects = [{ id, name, role: principal.role }]
      return { type: principal.type, id: principal.id, email: null, name: null, instance_admin: false, projects }
    }
    case 'user': {
      const user = await getUser(pool, principal.id)
      if (!user) throw unauthenticated()
      const { id, email, name, instanceAdmin } = user
      const projects = await projectsOf(pool, id)
      return { type: principal.type, id, email, name, instance_admin: instanceAdmin, projects }
    }
  }
}
