import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestDatabase } from '../../test/kit/database.ts'
import { insertProject } from '../../test/kit/runs.ts'
import { inTransaction } from '../db/transaction.ts'
import { MusterError } from '../kernel/errors.ts'
import { newId } from '../kernel/id.ts'
import { type Actor, systemActor } from '../kernel/principal.ts'
import type { PromptMessage } from '../kernel/prompt.ts'
import { getPrompt, getVersion, listPrompts, listVersions, type PromptKey } from './prompts.ts'
import { shippedPrompts } from './shipped-prompts.ts'
import { deletePrompt, rollBackPrompt, savePrompt } from './write-prompt.ts'

const { pool } = await createTestDatabase()
const says = (content: string): PromptMessage[] => [{ role: 'system', content }]
const release = (text: string) =>
  shippedPrompts(
    ['planner', 'writer'].flatMap((promptId) =>
      ['blue', 'green'].map((variantId) => ({
        promptId,
        variantId,
        messages: says(`${text} ${promptId} ${variantId}`),
      })),
    ),
  )
const shipped = release('first')
const ada: Actor = { type: 'user', id: newId(), requestId: 'r', address: null }
const write = { shipped, actor: ada }

const keyOf = (projectId: string, promptId = 'planner', variantId = 'blue'): PromptKey => ({
  projectId,
  promptId,
  variantId,
})
const save = (key: PromptKey, text: string, expected_version?: number, by = write) =>
  inTransaction(pool, (tx) => savePrompt(tx, key, { messages: says(text), expected_version }, by))
const remove = (key: PromptKey, by = write) => inTransaction(pool, (tx) => deletePrompt(tx, key, by))
const rollBack = (key: PromptKey, version: number, expected_version?: number) =>
  inTransaction(pool, (tx) => rollBackPrompt(tx, key, { version, expected_version }, write))
const textOf = async (key: PromptKey, of = shipped) => (await getPrompt(pool, of, key)).messages[0]?.content
const history = async (key: PromptKey) =>
  (await listVersions(pool, shipped, key, { limit: 50 })).items.map(({ version, messages, seeded }) => [
    version,
    messages?.[0]?.content ?? null,
    seeded,
  ])
const fails = (code: string, message?: RegExp) => (error: unknown) =>
  error instanceof MusterError && error.code === code && (message === undefined || message.test(error.message))

test('a project has the prompts that came with Muster from its creation on, without a row of its own', async () => {
  const key = keyOf(await insertProject(pool))
  const prompt = await getPrompt(pool, shipped, key)
  const { rows } = await pool.query('select created_at from projects where id = $1', [key.projectId])
  assert.deepEqual(prompt, {
    project_id: key.projectId,
    prompt_id: 'planner',
    variant_id: 'blue',
    version: 1,
    seeded: true,
    actor: { type: 'system', id: null },
    created_at: rows[0].created_at.toISOString(),
    messages: says('first planner blue'),
    unknown_variables: [],
  })
  assert.deepEqual(await history(key), [[1, 'first planner blue', true]])
  assert.equal((await pool.query('select from prompt_variants where project_id = $1', [key.projectId])).rowCount, 0)
})

test('every change is a version, with its author and time; the text that came with Muster stays the first', async () => {
  const key = keyOf(await insertProject(pool))
  const saved = await save(key, 'second')
  assert.deepEqual([saved.version, saved.seeded, saved.actor], [2, false, { type: 'user', id: ada.id }])
  await save(key, 'third', undefined, { shipped, actor: systemActor })
  assert.deepEqual(await history(key), [
    [3, 'third', false],
    [2, 'second', false],
    [1, 'first planner blue', true],
  ])
  assert.equal(await textOf(key), 'third')
  assert.equal(
    await textOf(keyOf(key.projectId, 'planner', 'green')),
    'first planner green',
    'the other variant is untouched',
  )
  await assert.rejects(pool.query(`update prompt_versions set messages = '[]'`), /append-only/)
})

test('a new release changes the prompts that a project has not touched, and no other', async () => {
  const projectId = await insertProject(pool)
  const [edited, deleted, untouched] = [
    keyOf(projectId),
    keyOf(projectId, 'writer'),
    keyOf(projectId, 'writer', 'green'),
  ]
  await save(edited, 'by people')
  await remove(deleted)
  const next = release('second')
  assert.equal(await textOf(edited, next), 'by people')
  await assert.rejects(getPrompt(pool, next, deleted), fails('PROMPT_MISSING'))
  assert.equal(await textOf(untouched, next), 'second writer green')
  assert.equal((await getVersion(pool, next, edited, 1)).messages?.[0]?.content, 'first planner blue', 'history stays')
})

test('a deleted prompt is missing, keeps its history, and comes back by a rollback or a save', async () => {
  const projectId = await insertProject(pool)
  const key = keyOf(projectId)
  await remove(key)
  await assert.rejects(getPrompt(pool, shipped, key), fails('PROMPT_MISSING', /"planner" in the variant "blue"/))
  await assert.rejects(remove(key), fails('PROMPT_MISSING'))
  const listed = await listPrompts(pool, shipped, projectId, { limit: 50 })
  assert.deepEqual(
    listed.items.map(({ prompt_id, variant_id }) => `${prompt_id}/${variant_id}`),
    ['planner/green', 'writer/blue', 'writer/green'],
  )
  assert.deepEqual((await rollBack(key, 1)).messages, says('first planner blue'))
  await remove(key)
  await save(key, 'again')
  assert.deepEqual(await history(key), [
    [5, 'again', false],
    [4, null, false],
    [3, 'first planner blue', false],
    [2, null, false],
    [1, 'first planner blue', true],
  ])
  await assert.rejects(rollBack(key, 2), fails('CONFLICT', /no text/))
  await assert.rejects(rollBack(key, 6), fails('NOT_FOUND'))
})

test('a rollback is a new version that names the one it repeats', async () => {
  const key = keyOf(await insertProject(pool), 'own', 'blue')
  await save(key, 'one')
  await save(key, 'two')
  assert.equal((await rollBack(key, 1)).version, 3)
  assert.deepEqual(await history(key), [
    [3, 'one', false],
    [2, 'two', false],
    [1, 'one', false],
  ])
  const [newest] = (await listVersions(pool, shipped, key, { limit: 1 })).items
  assert.equal(newest?.rolled_back_to, 1)
})

test('people who save at once make a version each, without gap or double', async () => {
  for (const promptId of ['planner', 'own']) {
    const key = keyOf(await insertProject(pool), promptId)
    const texts = Array.from({ length: 15 }, (_, i) => `text ${i}`)
    await Promise.all(texts.map((text) => save(key, text)))
    const versions = (await history(key)).filter(([, , seeded]) => !seeded)
    const first = promptId === 'planner' ? 2 : 1
    assert.deepEqual(
      versions.map(([version]) => version).reverse(),
      texts.map((_, i) => i + first),
    )
    assert.deepEqual(versions.map(([, text]) => text).sort(), texts.toSorted())
    assert.equal(await textOf(key), versions[0]?.[1], 'the latest holds')
  }
})

test('of people who expect the same version one saves, and the others get an error', async () => {
  for (const [promptId, expected] of [
    ['planner', 1],
    ['own', 0],
  ] as const) {
    const key = keyOf(await insertProject(pool), promptId)
    await assert.rejects(save(key, 'x', expected + 7), fails('CONFLICT', new RegExp(`at version ${expected} `)))
    const outcomes = await Promise.allSettled(['a', 'b', 'c'].map((text) => save(key, text, expected)))
    assert.equal(outcomes.filter(({ status }) => status === 'fulfilled').length, 1)
    for (const outcome of outcomes) {
      if (outcome.status === 'rejected') assert.ok(fails('CONFLICT', /is at version/)(outcome.reason), outcome.reason)
    }
    await assert.rejects(save(key, 'd', expected + 7), fails('CONFLICT'))
    await assert.rejects(rollBack(key, expected + 1, expected), fails('CONFLICT'))
    assert.equal((await rollBack(key, expected + 1, expected + 1)).version, expected + 2)
  }
})

test('an unknown prompt is missing; names that no prompt can have are refused', async () => {
  const projectId = await insertProject(pool)
  for (const promptId of ['unknown', 'a b', 'ä', '\0', '', '../x', 'x'.repeat(65)]) {
    const key = keyOf(projectId, promptId)
    await assert.rejects(getPrompt(pool, shipped, key), fails('PROMPT_MISSING'))
    await assert.rejects(remove(key), fails('PROMPT_MISSING'))
    await assert.rejects(listVersions(pool, shipped, key, { limit: 1 }), fails('PROMPT_MISSING'))
    await assert.rejects(rollBack(key, 1), fails('PROMPT_MISSING'))
    if (promptId !== 'unknown') await assert.rejects(save(key, 'x'), fails('INVALID_REQUEST'))
  }
})

test('the list is in the order of names, page by page, own prompts among those that came with Muster', async () => {
  const projectId = await insertProject(pool)
  const other = await insertProject(pool)
  await save(keyOf(other, 'foreign'), 'x')
  for (const name of ['Zebra', '_own', 'planner_2', 'a'.repeat(64)]) await save(keyOf(projectId, name), 'x')
  await save(keyOf(projectId, 'writer', 'blue'), 'x')
  await remove(keyOf(projectId, 'planner', 'green'))
  const found: string[] = []
  let cursor: string | undefined
  for (let pages = 0; pages < 10; pages++) {
    const page = await listPrompts(pool, shipped, projectId, { limit: 3, cursor })
    assert.ok(page.items.length <= 3)
    found.push(...page.items.map((item) => `${item.prompt_id}/${item.variant_id} ${item.version}`))
    if (page.next_cursor === null) break
    assert.ok(page.next_cursor.length <= 200, 'the cursor fits the limits of the list')
    cursor = page.next_cursor
  }
  assert.deepEqual(found, [
    'Zebra/blue 1',
    '_own/blue 1',
    `${'a'.repeat(64)}/blue 1`,
    'planner/blue 1',
    'planner_2/blue 1',
    'writer/blue 2',
    'writer/green 1',
  ])
  await assert.rejects(listPrompts(pool, shipped, projectId, { limit: 3, cursor: 'no' }), fails('INVALID_REQUEST'))
})

test('a page of versions ends before it is too large, and none is missed', async () => {
  const key = keyOf(await insertProject(pool), 'large')
  for (let i = 0; i < 12; i++) {
    const messages = Array.from({ length: 5 }, () => ({ role: 'user' as const, content: `${i}`.repeat(190_000) }))
    await inTransaction(pool, (tx) => savePrompt(tx, key, { messages, expected_version: i }, write))
  }
  const seen: number[] = []
  let cursor: string | undefined
  let pages = 0
  for (; pages < 20; pages++) {
    const page = await listVersions(pool, shipped, key, { limit: 50, cursor })
    seen.push(...page.items.map(({ version }) => version))
    if (page.next_cursor === null) break
    cursor = page.next_cursor
  }
  assert.deepEqual(
    seen,
    Array.from({ length: 12 }, (_, i) => 12 - i),
  )
  assert.ok(pages > 0, 'the list took more than one page')
  await assert.rejects(listVersions(pool, shipped, key, { limit: 1, cursor: '-1' }), fails('INVALID_REQUEST'))
})

test('a change and its entry in the audit log are one', async () => {
  const key = keyOf(await insertProject(pool))
  await save(key, 'x')
  await rollBack(key, 1)
  await remove(key)
  await save(key, 'y', 1).catch(() => {})
  const { rows } = await pool.query(
    'select action, actor_id, target_type, target_id, details from audit_log where project_id = $1 order by seq',
    [key.projectId],
  )
  const names = { prompt_id: 'planner', variant_id: 'blue' }
  const noted = { actor_id: ada.id, target_type: 'prompt', target_id: 'planner/blue' }
  assert.deepEqual(rows, [
    { action: 'prompt.save', ...noted, details: { ...names, version: 2 } },
    { action: 'prompt.rollback', ...noted, details: { ...names, version: 3, rolled_back_to: 1 } },
    { action: 'prompt.delete', ...noted, details: { ...names, version: 4 } },
  ])
})
