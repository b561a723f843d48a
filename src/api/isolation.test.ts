// Another project's id is answered byte for byte like an unknown one, wherever an id can stand.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestApp } from '../../test/kit/app.ts'
import { signInByLink } from '../../test/kit/people.ts'
import { newId } from '../kernel/id.ts'

const kit = await createTestApp()
const mine = await kit.createProject('mine')
const theirs = await kit.createProject('theirs')
const myKey = (await kit.createKey(mine.id, 'admin')).key
const theirKeyId = (await kit.createKey(theirs.id, 'viewer')).id
const theirMember = await kit.call<{ id: string }>(`POST /api/projects/${theirs.id}/members`, {
  body: { email: 'someone@example.com', role: 'viewer' },
})
const me = await signInByLink(kit, { member: { projectId: mine.id, role: 'admin' } })

/** Each route with one id left open: what stands there is theirs, unknown, or no id at all. */
const doors: { route: (id: string) => string; theirs: string; body?: unknown }[] = [
  { route: (id) => `GET /api/projects/${id}`, theirs: theirs.id },
  { route: (id) => `PATCH /api/projects/${id}`, theirs: theirs.id, body: { name: 'stolen' } },
  { route: (id) => `DELETE /api/projects/${id}`, theirs: theirs.id },
  { route: (id) => `POST /api/projects/${id}/halt`, theirs: theirs.id },
  { route: (id) => `POST /api/projects/${id}/unhalt`, theirs: theirs.id },
  { route: (id) => `GET /api/projects/${id}/settings`, theirs: theirs.id },
  { route: (id) => `PATCH /api/projects/${id}/settings`, theirs: theirs.id, body: { poll_interval: 100 } },
  { route: (id) => `GET /api/projects/${id}/audit`, theirs: theirs.id },
  { route: (id) => `GET /api/projects/${id}/keys`, theirs: theirs.id },
  { route: (id) => `POST /api/projects/${id}/keys`, theirs: theirs.id, body: { name: 'x', role: 'admin' } },
  { route: (id) => `GET /api/projects/${id}/members`, theirs: theirs.id },
  { route: (id) => `POST /api/projects/${id}/members`, theirs: theirs.id, body: { email: 'x@y.zz', role: 'admin' } },
  { route: (id) => `DELETE /api/projects/${id}/keys/${theirKeyId}`, theirs: theirs.id },
  { route: (id) => `DELETE /api/projects/${mine.id}/keys/${id}`, theirs: theirKeyId },
  {
    route: (id) => `PATCH /api/projects/${mine.id}/members/${id}`,
    theirs: theirMember.body.id,
    body: { role: 'admin' },
  },
  { route: (id) => `DELETE /api/projects/${mine.id}/members/${id}`, theirs: theirMember.body.id },
]

for (const door of doors) {
  for (const [who, credentials] of Object.entries({ key: { token: myKey }, person: { cookie: me.cookie } })) {
    test(`${door.route(':id')} tells a ${who} of another project nothing`, async () => {
      const options = { ...credentials, ...(door.body === undefined ? {} : { body: door.body }) }
      const [theirAnswer, ...others] = await Promise.all(
        [door.theirs, newId(), 'no-id', '%00', `${door.theirs}x`].map((id) => kit.call(door.route(id), options)),
      )
      assert.equal(theirAnswer?.status, 404)
      for (const other of others.slice(0, 2)) {
        assert.equal(other.text, theirAnswer?.text)
        assert.deepEqual(comparable(other.headers), comparable(theirAnswer?.headers ?? {}))
      }
      for (const other of others) assert.equal(other.status, 404)
    })
  }
}

test('nothing of theirs was changed by all that', async () => {
  const project = await kit.call(`GET /api/projects/${theirs.id}`)
  assert.equal(project.body.name, 'theirs')
  assert.equal(project.body.halted_at, null)
  const members = await kit.call<{ items: unknown[] }>(`GET /api/projects/${theirs.id}/members`)
  assert.equal(members.body.items.length, 1)
  const audit = await kit.call<{ items: { action: string }[] }>(`GET /api/projects/${theirs.id}/audit`)
  assert.deepEqual(
    audit.body.items.map((entry) => entry.action),
    ['member.invite', 'key.create', 'project.create'],
  )
})

test('lists hold only what the credentials can see', async () => {
  for (const credentials of [{ token: myKey }, { cookie: me.cookie }]) {
    const answer = await kit.call<{ items: { id: string }[] }>('GET /api/projects', credentials)
    assert.deepEqual(
      answer.body.items.map((project) => project.id),
      [mine.id],
    )
  }
})

function comparable(headers: Record<string, unknown>): Record<string, unknown> {
  const { 'x-request-id': _id, date: _date, ...rest } = headers
  return rest
}
