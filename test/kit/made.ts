import assert from 'node:assert/strict'
import type { Muster } from './process.ts'

/** The environment of servers that share a database. */
export const ONE_FOR_ALL_SERVERS = {
  MUSTER_ADMIN_TOKEN: 'one-token-for-all-servers',
  MUSTER_SECRET_KEY: 'one-key-for-all-of-the-servers',
}

/** Makes something by the API. Returns its id. */
export async function made(server: Muster, route: string, body: object): Promise<string> {
  const answer = await server.call<{ id: string }>(route, { body })
  assert.equal(answer.status, 201, answer.text)
  return answer.body.id
}
