import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestApp } from '../../../test/kit/app.ts'
import { signInByLink } from '../../../test/kit/people.ts'
import { defaultSettings } from '../../kernel/project.ts'

const kit = await createTestApp()

interface List {
  items: { id: string; name: string }[]
  next_cursor: string | null
}

test('a list is read page by page, newest first, without gap or repeat while others write', async () => {
  const made: string[] = []
  for (let number = 0; number < 7; number++) made.push((await kit.createProject(`p${number}`)).id)
  const seen: string[] = []
  let cursor: string | null = ''
  while (cursor !== null) {
    const page: List = (await kit.call<List>(`GET /api/projects?limit=3${cursor ? `&cursor=${cursor}` : ''}`)).body
    seen.push(...page.items.map((item) => item.id))
    cursor = page.next_cursor
    if (cursor !== null) await kit.createProject('in between')
  }
  assert.deepEqual(seen, made.toReversed())
})

test('rows of the same instant are not lost between pages', async () => {
  const fresh = await createTestApp()
  await fresh.pool.query(
    `insert into projects (id, name, created_at) select gen_random_uuid(), 'same', '2026-01-01' from generate_series(1, 9)`,
  )
  const seen = new Set<string>()
  let cursor: string | null = ''
  while (cursor !== null) {
    const page: List = (await fresh.call<List>(`GET /api/projects?limit=2${cursor ? `&cursor=${cursor}` : ''}`)).body
    for (const item of page.items) seen.add(item.id)
    cursor = page.next_cursor
  }
  assert.equal(seen.size, 9)
})

test('a project is changed, halted, released and deleted; each change leaves one audit entry with its actor', async () => {
  const project = await kit.createProject('life')
  const { id, key } = await kit.createKey(project.id, 'admin')
  const token = { token: key }
  const path = `/api/projects/${project.id}`
  assert.equal((await kit.call(`PATCH ${path}`, { ...token, body: { name: 'renamed' } })).body.name, 'renamed')
  assert.ok((await kit.call(`POST ${path}/halt`, token)).body.halted_at)
  const again = await kit.call(`POST ${path}/halt`, token)
  assert.equal(again.status, 200)
  assert.equal((await kit.call(`POST ${path}/unhalt`, { ...token, body: {} })).body.halted_at, null)
  assert.equal((await kit.call(`POST ${path}/unhalt`, token)).status, 200)
  await kit.call(`PATCH ${path}`, { ...token, body: {} })
  const audit = await kit.call<{ items: { action: string; actor: { type: string; id: string | null } }[] }>(
    `GET ${path}/audit`,
    token,
  )
  assert.deepEqual(
    audit.body.items.map((entry) => [entry.action, entry.actor.type]),
    [
      ['project.unhalt', 'key'],
      ['project.halt', 'key'],
      ['project.update', 'key'],
      ['key.create', 'instance_admin'],
      ['project.create', 'instance_admin'],
    ],
  )
  assert.equal(audit.body.items[0]?.actor.id, id)
  assert.equal((await kit.call(`DELETE ${path}`, token)).status, 204)
  assert.equal((await kit.call(`GET ${path}`)).status, 404)
  const kept = await kit.call<{ items: { action: string; project_id: string }[] }>('GET /api/audit?limit=1')
  assert.equal(kept.body.items[0]?.action, 'project.delete')
  assert.equal(kept.body.items[0]?.project_id, project.id)
})

test('settings have the defaults of the contract until they are changed, one by one', async () => {
  const { id } = await kit.createProject()
  const path = `/api/projects/${id}/settings`
  assert.deepEqual((await kit.call(`GET ${path}`)).body, defaultSettings)
  const patched = await kit.call(`PATCH ${path}`, { body: { poll_interval: 100, run_retention_days: 30 } })
  assert.deepEqual(patched.body, { ...defaultSettings, poll_interval: 100, run_retention_days: 30 })
  await kit.call(`PATCH ${path}`, { body: { run_retention_days: null } })
  assert.deepEqual((await kit.call(`GET ${path}`)).body, { ...defaultSettings, poll_interval: 100 })
})

test('patches of several settings at once are all kept', async () => {
  const { id } = await kit.createProject()
  const patches = [{ poll_interval: 111 }, { flow_timeout: 222 }, { cancel_drain: 333 }, { grace_period: 444 }]
  await Promise.all(patches.map((body) => kit.call(`PATCH /api/projects/${id}/settings`, { body })))
  const settings = (await kit.call(`GET /api/projects/${id}/settings`)).body
  assert.deepEqual(settings, Object.assign({ ...defaultSettings }, ...patches))
})

test('a project keeps one admin, also when two admins remove each other at once', async () => {
  const project = await kit.createProject()
  const admins = [
    await signInByLink(kit, { member: { projectId: project.id, role: 'admin' } }),
    await signInByLink(kit, { member: { projectId: project.id, role: 'admin' } }),
  ]
  const list = await kit.call<{ items: { id: string; user_id: string }[] }>(`GET /api/projects/${project.id}/members`)
  const memberOf = (userId: string | undefined) => list.body.items.find((member) => member.user_id === userId)?.id
  const [a, b] = admins
  const answers = await Promise.all([
    kit.call(`DELETE /api/projects/${project.id}/members/${memberOf(b?.userId)}`, { cookie: a?.cookie ?? '' }),
    kit.call(`DELETE /api/projects/${project.id}/members/${memberOf(a?.userId)}`, { cookie: b?.cookie ?? '' }),
  ])
  assert.equal(answers.filter((answer) => answer.status === 204).length, 1)
  const left = await kit.call<{ items: { id: string; user_id: string }[] }>(`GET /api/projects/${project.id}/members`)
  assert.equal(left.body.items.length, 1)
  const survivor = admins.find((admin) => admin.userId === left.body.items[0]?.user_id)
  const path = `/api/projects/${project.id}/members/${left.body.items[0]?.id}`
  assert.equal((await kit.call(`DELETE ${path}`, { cookie: survivor?.cookie ?? '' })).status, 409)
  assert.equal(
    (await kit.call(`PATCH ${path}`, { cookie: survivor?.cookie ?? '', body: { role: 'viewer' } })).status,
    409,
  )
})

test('the audit log refuses every change', async () => {
  for (const sql of ['update audit_log set action = $$x$$', 'delete from audit_log', 'truncate audit_log']) {
    await assert.rejects(kit.pool.query(sql), /append-only/)
  }
})
