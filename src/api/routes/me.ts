import type { z } from 'zod'
import type { Pool } from '../../db/pool.ts'
import { getProject } from '../../identity/projects.ts'
import { getUser, projectsOf } from '../../identity/users.ts'
import { meSchema } from '../../kernel/access.ts'
import { unauthenticated } from '../../kernel/errors.ts'
import type { Principal } from '../../kernel/principal.ts'
import type { App } from '../http/app.ts'
import { principalOf } from '../http/auth.ts'
import { routesOf } from '../http/routes-of.ts'
import { answers } from '../http/shapes.ts'

const openTo = routesOf('Sign-in')

export const meAnswers = answers(200, meSchema)

export function addMeRoutes(app: App, { pool }: { pool: Pool }): void {
  app.get(
    '/api/me',
    openTo('authenticated', 'Read the identity behind these credentials', { response: meAnswers }),
    (request) => describeMe(pool, principalOf(request)),
  )
}

type Me = z.infer<typeof meSchema>

const stranger: Omit<Me, 'type'> = {
  id: null,
  email: null,
  name: null,
  instance_admin: false,
  has_password: false,
  projects: [],
}

export async function describeMe(pool: Pool, principal: Principal): Promise<Me> {
  switch (principal.type) {
    case 'instance_admin':
      return { ...stranger, type: 'instance_admin', id: principal.id, name: 'Instance admin', instance_admin: true }
    case 'key': {
      const { id, name } = await getProject(pool, principal.projectId)
      return { ...stranger, type: 'key', id: principal.id, projects: [{ id, name, role: principal.role }] }
    }
    case 'user': {
      const user = await getUser(pool, principal.id)
      if (!user) throw unauthenticated()
      const { id, email, name, instanceAdmin, hasPassword } = user
      const projects = await projectsOf(pool, id)
      return { type: 'user', id, email, name, instance_admin: instanceAdmin, has_password: hasPassword, projects }
    }
  }
}
