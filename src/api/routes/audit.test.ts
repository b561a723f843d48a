// The filters of the audit log, in a project and in the whole instance.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestApp, INSTANCE_ID } from '../../../test/kit/app.ts'
import { signInByLink } from '../../../test/kit/people.ts'
import { recordAudits } from '../../audit/record.ts'
import type { AuditEntry } from '../../kernel/access.ts'
import type { Page } from '../../kernel/fields.ts'
import { newId } from '../../kernel/id.ts'
import { type Actor, agentActor, systemActor } from '../../kernel/principal.ts'

const kit = await createTestApp()
const mine = await kit.createProject('Mine')
const theirs = await kit.createProject('Theirs')
const key = await kit.createKey(mine.id, 'admin', 'CI key')
const revoked = await kit.createKey(mine.id, 'admin', 'Old key')
const theirKey = await kit.createKey(theirs.id, 'admin', 'CI key')
const person = await signInByLink(kit, { member: { projectId: mine.id, role: 'admin' } })
const agent = await kit.createAgent(mine.id, { name: 'Scout' })
await kit.pool.query(`insert into instance (id, secret_key_fingerprint) values ($1, 'abc')`, [INSTANCE_ID])
const theirScout = await kit.createAgent(theirs.id, { name: 'Their scout' })
await kit.call(`DELETE /api/projects/${mine.id}/keys/${revoked.id}`)
await kit.call(`GET /api/projects/${mine.id}/audit`, { token: key.key })

const by = (type: Actor['type'], id: string): Actor => ({ ...systemActor, type, id })
const actors = {
  key: by('key', key.id),
  revoked: by('key', revoked.id),
  person: by('user', person.userId),
  agent: agentActor(agent.id),
  admin: by('instance_admin', INSTANCE_ID),
}
const noted: [project: string | null, action: string, actor: Actor][] = [
  [mine.id, 'x.one', actors.key],
  [mine.id, 'x.two', actors.person],
  [mine.id, 'x', actors.agent],
  [mine.id, 'x.one', actors.revoked],
  [mine.id, 'xy.one', actors.key],
  [mine.id, 'x_one', actors.key],
  [mine.id, 'x-y.one', actors.key],
  [mine.id, 'x.one.more', actors.admin],
  [theirs.id, 'x.one', by('key', theirKey.id)],
  [theirs.id, 'x.two', actors.person],
  [null, 'x.three', actors.person],
  [null, 'x.three', systemActor],
  [theirs.id, 'y', by('agent', theirScout.id)],
]
const places = new Map<string, number>()
for (const [place, [projectId, action, actor]] of noted.entries()) {
  const targetId = newId()
  places.set(targetId, place)
  await recordAudits(kit.pool, [{ action, actor, projectId, targetType: 'test', targetId }])
}

/** The places of the noted entries that a list has, newest first. */
async function list(query: Record<string, string>, project: string | null = mine.id): Promise<number[]> {
  const path = project === null ? '/api/audit' : `/api/projects/${project}/audit`
  const { status, body, text } = await kit.call<Page<AuditEntry>>(`GET ${path}?${new URLSearchParams(query)}`)
  assert.equal(status, 200, text)
  assert.equal(body.next_cursor, null)
  return body.items.flatMap(({ target }) => places.get(target.id ?? '') ?? [])
}

const cases: [name: string, query: Record<string, string>, ofProject: number[], ofInstance: number[]][] = [
  ['the words before a point', { action: 'x' }, [7, 3, 2, 1, 0], [11, 10, 9, 8, 7, 3, 2, 1, 0]],
  ['a whole action, and those below it', { action: 'x.one' }, [7, 3, 0], [8, 7, 3, 0]],
  ['a part of a word', { action: 'x.on' }, [], []],
  ['a trailing point', { action: 'x.' }, [], []],
  ['a percent sign', { action: 'x%' }, [], []],
  ['an underscore', { action: 'x_one' }, [5], [5]],
  ['another case', { action: 'X.one' }, [], []],
  ['an unknown action', { action: 'nothing' }, [], []],
  ['the id of a key', { actor: key.id }, [6, 5, 4, 0], [6, 5, 4, 0]],
  ['an id in capitals', { actor: key.id.toUpperCase() }, [6, 5, 4, 0], [6, 5, 4, 0]],
  ['the name of a key, which another project has too', { actor: 'ci key' }, [6, 5, 4, 0], [8, 6, 5, 4, 0]],
  ['the name of a revoked key', { actor: 'Old key' }, [3], [3]],
  ['the id of a person', { actor: person.userId }, [1], [10, 9, 1]],
  ['the address of a person', { actor: person.email.toUpperCase() }, [1], [10, 9, 1]],
  ['the id of an agent', { actor: agent.id }, [2], [2]],
  ['the name of an agent', { actor: 'Scout' }, [2], []],
  ['the name of an agent of another project', { actor: 'Their scout' }, [], []],
  ['the name of the instance admin', { actor: 'instance admin' }, [7], [7]],
  ['the id of the instance', { actor: INSTANCE_ID }, [7], [7]],
  ['an id of another project', { actor: theirKey.id }, [], [8]],
  ['an unknown id', { actor: newId() }, [], []],
  ['an unknown name', { actor: '%' }, [], []],
  ['both', { action: 'x', actor: 'CI key' }, [0], [8, 0]],
  ['both, of a person', { action: 'x.two', actor: person.email }, [1], [9, 1]],
  ['both, without a match', { action: 'x.two', actor: 'CI key' }, [], []],
]
for (const [name, query, ofProject, ofInstance] of cases) {
  test(`a filter by ${name}`, async () => {
    const shown = (entries: number[]) =>
      [INSTANCE_ID, 'instance admin'].includes(query.actor ?? '') ? entries.filter((place) => place === 7) : entries
    assert.deepEqual(shown(await list(query)), ofProject)
    assert.deepEqual(shown(await list({ ...query, limit: '200' }, null)), ofInstance)
  })
}

test('a filtered list is read page by page, each entry once', async () => {
  for (const [path, expected] of [
    [`/api/projects/${mine.id}/audit`, [7, 3, 2, 1, 0]],
    ['/api/audit', [11, 10, 9, 8, 7, 3, 2, 1, 0]],
  ] as const) {
    const seen: number[] = []
    for (let cursor: string | null = ''; cursor !== null; ) {
      const query = new URLSearchParams({ action: 'x', limit: '2', ...(cursor ? { cursor } : {}) })
      const { body } = await kit.call<Page<AuditEntry>>(`GET ${path}?${query}`)
      seen.push(...body.items.flatMap(({ target }) => places.get(target.id ?? '') ?? []))
      cursor = body.next_cursor
    }
    assert.deepEqual(seen, expected)
  }
})

test('an entry says the name of its actor', async () => {
  const { body } = await kit.call<Page<AuditEntry>>(`GET /api/projects/${mine.id}/audit?action=x`)
  assert.deepEqual(
    body.items.map(({ actor, actor_name }) => [actor.type, actor_name]),
    [
      ['instance_admin', 'Instance admin'],
      ['key', 'Old key'],
      ['agent', 'Scout'],
      ['user', person.email],
      ['key', 'CI key'],
    ],
  )
})

test('an entry says the name of its target as it is now, or as it was noted', async () => {
  const path = `/api/projects/${mine.id}`
  const renamed = await kit.createAgent(mine.id, { name: 'Before' })
  const deleted = await kit.createAgent(mine.id, { name: 'Gone' })
  const foreign = await kit.createAgent(theirs.id, { name: 'Secret' })
  await kit.call(`POST ${path}/agents/${renamed.id}/stop`)
  await kit.call(`POST ${path}/agents/${deleted.id}/stop`)
  await kit.call(`PATCH ${path}/agents/${renamed.id}`, { body: { name: 'After' } })
  await kit.call(`DELETE ${path}/agents/${deleted.id}`)
  const note = { action: 'named.thing', actor: actors.admin, projectId: mine.id, targetType: 'agent' }
  await recordAudits(kit.pool, [
    { ...note, targetId: foreign.id },
    { ...note, targetType: 'prompt', targetId: 'poem/blue' },
    { ...note, targetType: 'task', targetId: newId(), details: { title: 'Once' } },
    { ...note, targetType: 'object', targetId: 'made up' },
    { ...note, targetId: null },
  ])
  const listed = async (action: string, place = path) => {
    const { body } = await kit.call<Page<AuditEntry>>(`GET ${place}/audit?action=${action}`)
    return body.items.map(({ target_name, target_exists }) => [target_name, target_exists])
  }
  const stopped = [
    ['Gone', false],
    ['After', true],
  ]
  assert.deepEqual(await listed('agent.stop'), stopped)
  assert.deepEqual(await listed('agent.stop', '/api'), stopped)
  assert.deepEqual(await listed('agent.delete'), [['Gone', false]])
  assert.deepEqual(await listed('named'), [
    [null, null],
    [null, false],
    ['Once', false],
    ['poem/blue', null],
    [null, false],
  ])
  assert.deepEqual((await listed('key.create')).toSorted(), [
    ['CI key', true],
    ['Old key', false],
  ])
  assert.deepEqual((await listed('project.create', '/api')).toSorted(), [
    ['Mine', true],
    ['Theirs', true],
  ])
})

test('the name of a thing that was deleted stays in the entry of its deletion', async () => {
  const project = await kit.createProject('Short-lived')
  const path = `/api/projects/${project.id}`
  const hooked = await kit.createAgent(project.id, { name: 'Hooked', trigger_type: 'webhook' })
  const hook = await kit.call(`POST ${path}/agents/${hooked.id}/hooks`, { body: { name: 'Bell' } })
  const root = { type: 'task', agent: 'Hooked' }
  const flow = await kit.call(`POST ${path}/flows`, { body: { name: 'Round', root } })
  await kit.call(`DELETE ${path}/agents/${hooked.id}/hooks/${hook.body.id}`)
  await kit.call(`DELETE ${path}/flows/${flow.body.id}`)
  const nameIn = async (list: string): Promise<unknown> =>
    (await kit.call<Page<AuditEntry>>(`GET ${list}`)).body.items.map(({ target_name }) => target_name)
  assert.deepEqual(await nameIn(`${path}/audit?action=hook.delete`), ['Bell'])
  assert.deepEqual(await nameIn(`${path}/audit?action=flow.delete`), ['Round'])
  assert.equal((await kit.call(`DELETE ${path}`)).status, 204)
  assert.deepEqual(await nameIn('/api/audit?action=project.delete'), ['Short-lived'])
})

for (const query of [
  'action=',
  'actor=',
  `action=${'x'.repeat(201)}`,
  `actor=${'x'.repeat(255)}`,
  'action=%00',
  'who=me',
]) {
  test(`the query ${query.slice(0, 12)} is refused`, async () => {
    for (const path of [`/api/projects/${mine.id}/audit`, '/api/audit']) {
      const { status, body } = await kit.call<{ error: { code: string } }>(`GET ${path}?${query}`)
      assert.deepEqual([status, body.error.code], [400, 'INVALID_REQUEST'])
    }
  })
}

test('a filter opens nothing: other roles and other projects are refused as before', async () => {
  const viewer = (await kit.createKey(mine.id, 'viewer')).key
  for (const [path, token, status] of [
    [`/api/projects/${mine.id}/audit`, viewer, 403],
    [`/api/projects/${mine.id}/audit`, theirKey.key, 404],
    [`/api/projects/${mine.id}/audit`, null, 401],
    ['/api/audit', key.key, 403],
  ] as const) {
    assert.equal((await kit.call(`GET ${path}?action=x&actor=CI+key`, { token })).status, status)
  }
})
