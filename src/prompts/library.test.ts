import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestDatabase } from '../../test/kit/database.ts'
import { insertProject } from '../../test/kit/runs.ts'
import type { Db } from '../db/pool.ts'
import { inTransaction } from '../db/transaction.ts'
import { MusterError } from '../kernel/errors.ts'
import { systemActor } from '../kernel/principal.ts'
import type { PromptMessage } from '../kernel/prompt.ts'
import { createPromptLibrary, type PromptLibrary } from './library.ts'
import { shippedPrompts } from './shipped-prompts.ts'
import { deletePrompt, noticeOf, savePrompt } from './write-prompt.ts'

const { pool } = await createTestDatabase()
const says = (content: string): PromptMessage[] => [{ role: 'system', content }]
const shipped = shippedPrompts([{ promptId: 'planner', variantId: 'blue', messages: says('as it came') }])
const write = { shipped, actor: systemActor }
const keyOf = (projectId: string, promptId = 'planner') => ({ projectId, promptId, variantId: 'blue' })
const save = (projectId: string, text: string, promptId?: string) =>
  inTransaction(pool, (tx) => savePrompt(tx, keyOf(projectId, promptId), { messages: says(text) }, write))

/** A library whose clock stands still, and that counts its queries. */
function createCounted() {
  const clock = { ms: 0 }
  const count = { queries: 0 }
  /** Called before each query of the library is sent, and after its answer has come. */
  const hooks = { before: async () => {}, after: async () => {} }
  const db: Db = {
    query: async (sql, values) => {
      count.queries++
      await hooks.before()
      const answer = await pool.query(sql as string, values as unknown[])
      await hooks.after()
      return answer as never // the rows that the caller asked for
    },
  }
  return { clock, count, hooks, library: createPromptLibrary({ db, shipped, now: () => clock.ms }) }
}

const textOf = async (library: PromptLibrary, projectId: string, promptId = 'planner') =>
  (await library.get(projectId, promptId, 'blue')).messages[0]?.content

const isMissing = (error: unknown): boolean =>
  error instanceof MusterError &&
  error.code === 'PROMPT_MISSING' &&
  error.status === 422 &&
  /"nothing" in the variant "blue"/.test(error.message)

test('a prompt is read once and then kept, and every project has its own', async () => {
  const { library, count } = createCounted()
  const [one, two] = [await insertProject(pool), await insertProject(pool)]
  await save(one, 'of one')
  for (let i = 0; i < 5; i++) {
    assert.deepEqual(await library.get(one, 'planner', 'blue'), { messages: says('of one'), version: 2 })
    assert.deepEqual(await library.get(two, 'planner', 'blue'), { messages: says('as it came'), version: 1 })
  }
  assert.equal(count.queries, 2)
})

test('a notice makes this process read one prompt anew, and no other', async () => {
  const { library, count } = createCounted()
  const project = await insertProject(pool)
  await save(project, 'other', 'other')
  await textOf(library, project)
  await textOf(library, project, 'other')
  await save(project, 'changed')
  assert.equal(await textOf(library, project), 'as it came', 'the old text is kept until the notice comes')
  library.forget(noticeOf(keyOf(project)))
  assert.equal(await textOf(library, project), 'changed')
  await textOf(library, project, 'other')
  assert.equal(count.queries, 3)
})

test('a lost notice leaves an old text for five seconds at most', async () => {
  const { library, clock } = createCounted()
  const project = await insertProject(pool)
  await textOf(library, project)
  await save(project, 'changed')
  clock.ms = 4_999
  assert.equal(await textOf(library, project), 'as it came')
  clock.ms = 5_000
  assert.equal(await textOf(library, project), 'changed')
  await save(project, 'changed again')
  library.forgetAll()
  assert.equal(await textOf(library, project), 'changed again')
})

test('a text that was read before a change and arrives after its notice is not kept', async () => {
  const { library, hooks } = createCounted()
  const project = await insertProject(pool)
  hooks.after = async () => {
    hooks.after = async () => {}
    await save(project, 'changed')
    library.forget(noticeOf(keyOf(project)))
  }
  assert.equal(await textOf(library, project), 'as it came', 'the text was asked for before the change')
  assert.equal(await textOf(library, project), 'changed')
})

test('callers who ask while a prompt is read share the answer', async () => {
  const { library, count } = createCounted()
  const project = await insertProject(pool)
  const texts = await Promise.all(Array.from({ length: 20 }, () => textOf(library, project)))
  assert.deepEqual([new Set(texts).size, count.queries], [1, 1])
})

test('a missing prompt is an error with its name and variant, and is asked for again each time', async () => {
  const { library, count } = createCounted()
  const project = await insertProject(pool)
  await assert.rejects(library.get(project, 'nothing', 'blue'), isMissing)
  await save(project, 'now there', 'nothing')
  assert.equal(await textOf(library, project, 'nothing'), 'now there', 'the absence of the prompt is not kept')
  await inTransaction(pool, (tx) => deletePrompt(tx, keyOf(project, 'nothing'), write))
  library.forget(noticeOf(keyOf(project, 'nothing')))
  await assert.rejects(library.get(project, 'nothing', 'blue'), isMissing)
  assert.equal(count.queries, 3)
})

test('a database failure says nothing about the prompt, and the failure is not kept', async () => {
  const { library, hooks } = createCounted()
  const project = await insertProject(pool)
  hooks.before = async () => {
    throw new Error('Connection terminated')
  }
  await assert.rejects(textOf(library, project), /Connection terminated/)
  hooks.before = async () => {}
  assert.equal(await textOf(library, project), 'as it came')
})

test('large prompts are not kept, and the oldest give way to the newest', async () => {
  const { library, count } = createCounted()
  const project = await insertProject(pool)
  await save(project, 'x'.repeat(70_000), 'large')
  await textOf(library, project, 'large')
  await textOf(library, project, 'large')
  assert.equal(count.queries, 2)
  const projects = Array.from({ length: 1_001 }, (_, i) => `${project.slice(0, -8)}${String(i).padStart(8, '0')}`)
  for (const id of projects) await textOf(library, id)
  const before = count.queries
  await textOf(library, projects.at(-1) ?? '')
  assert.equal(count.queries, before)
  await textOf(library, projects[0] ?? '')
  assert.equal(count.queries, before + 1)
})
