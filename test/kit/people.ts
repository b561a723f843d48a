// People for tests: users made in the database and signed in through the real routes.
import { createSignInLink } from '../../src/identity/sign-in-links.ts'
import { newId } from '../../src/kernel/id.ts'
import type { Role } from '../../src/kernel/role.ts'
import type { TestApp } from './app.ts'

export interface Person {
  userId: string
  email: string
  cookie: string
}

/** A person without a password, signed in by a link; a member of the project if one is given. */
export async function signInByLink(
  kit: TestApp,
  options: { instanceAdmin?: boolean; member?: { projectId: string; role: Role } } = {},
): Promise<Person> {
  const userId = newId()
  const email = `${userId.slice(-12)}@example.com`
  await kit.pool.query('insert into auth.users (id, email, name, instance_admin) values ($1, $2, $3, $4)', [
    userId,
    email,
    'A person',
    options.instanceAdmin ?? false,
  ])
  if (options.member) {
    await kit.pool.query('insert into members (id, project_id, user_id, email, role) values ($1, $2, $3, $4, $5)', [
      newId(),
      options.member.projectId,
      userId,
      email,
      options.member.role,
    ])
  }
  const answer = await kit.call(`GET /sign-in/${await createSignInLink(kit.pool, userId)}`, { token: null })
  return { userId, email, cookie: cookieOf(answer.headers) }
}

/** The session cookie an answer set, as the next request sends it. */
export function cookieOf(headers: Record<string, unknown>): string {
  const [first = ''] = [headers['set-cookie']].flat()
  return String(first).split(';')[0] ?? ''
}
