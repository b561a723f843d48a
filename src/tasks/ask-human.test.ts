import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestDatabase } from '../../test/kit/database.ts'
import { insertProject, insertRuns } from '../../test/kit/runs.ts'
import { newId } from '../kernel/id.ts'
import { createAskHuman } from './ask-human.ts'
import { getTask } from './tasks.ts'

const { pool } = await createTestDatabase()
const projectId = await insertProject(pool)
const [runId = ''] = await insertRuns(pool, projectId, 1)
const people = createAskHuman({ pool })
const asked = (question: string, taskId = newId()) => ({
  taskId,
  projectId,
  runId,
  agentId: newId(),
  question,
})
const settle = (taskId: string, status: string, result: unknown = null) =>
  pool.query('update tasks set status = $2, result = $3 where id = $1', [taskId, status, JSON.stringify(result)])

test('a question becomes a task of high priority for people, with the run that waits for it', async () => {
  const question = asked('\n  Blue or green?  \nI would take blue.')
  await people.ask(question)
  const task = await getTask(pool, projectId, question.taskId)
  assert.equal(task.kind, 'escalation')
  assert.equal(task.title, 'Blue or green?')
  assert.equal(task.description, question.question)
  assert.equal(task.priority, 'high')
  assert.equal(task.assigned_to, null)
  assert.equal(task.run_id, question.runId)
  assert.deepEqual(task.created_by, { type: 'agent', id: question.agentId })
})

test('a question that is asked again under the same id is asked once', async () => {
  const question = asked('Once?')
  await people.ask(question)
  await settle(question.taskId, 'completed', 'yes')
  await people.ask({ ...question, question: 'Twice?' })
  const task = await getTask(pool, projectId, question.taskId)
  assert.equal(task.title, 'Once?')
  assert.equal(task.status, 'completed')
})

const questions: { name: string; question: string; title: RegExp }[] = [
  { name: 'of blank lines', question: ' \n\r\n ', title: /^A question$/ },
  { name: 'of one very long line', question: '😀'.repeat(2_000), title: /^(😀){499}…$/u },
  { name: 'with characters that PostgreSQL refuses', question: 'a\0b\ud800', title: /^a\ufffdb\ufffd$/ },
]
for (const { name, question, title } of questions) {
  test(`a question ${name} is asked all the same`, async () => {
    const one = asked(question)
    await people.ask(one)
    assert.match((await getTask(pool, projectId, one.taskId)).title, title)
  })
}

test('answers are those of resolved tasks; a task that was not answered is a refusal', async () => {
  const ids = Array.from({ length: 7 }, () => newId())
  const [open = '', text = '', object = '', empty = '', cancelled = '', rejected = '', working = ''] = ids
  for (const id of ids) await people.ask(asked('?', id))
  await settle(text, 'completed', 'blue')
  await settle(object, 'completed', { colour: 'blue' })
  await settle(empty, 'completed')
  await settle(cancelled, 'cancelled', 'ignored')
  await settle(rejected, 'rejected')
  await settle(working, 'in-progress', 'a draft')
  const declined = { answer: { error: 'The people in charge declined to answer.' }, isRefused: true }
  const answers = await people.answers([...ids, newId()])
  assert.deepEqual(
    answers,
    new Map<string, unknown>([
      [text, { answer: 'blue', isRefused: false }],
      [object, { answer: { colour: 'blue' }, isRefused: false }],
      [empty, { answer: '', isRefused: false }],
      [cancelled, declined],
      [rejected, declined],
    ]),
  )
  assert.ok(!answers.has(open))
})
