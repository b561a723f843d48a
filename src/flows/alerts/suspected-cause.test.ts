import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { TaskRecord } from '../history/trace.ts'
import { type BuiltInNode, builtInPatterns } from '../machine/built-in-patterns.ts'
import { topologiesIn } from '../machine/topologies.ts'
import { describeCause, slowestStage, stagesOf, suspectOf } from './suspected-cause.ts'

const now = new Date('2026-01-01T00:01:00.000Z')
const task = (id: string, fields: Partial<TaskRecord>): TaskRecord => ({
  id,
  name: id,
  kind: 'function',
  parent_id: null,
  depends_on: [],
  worker: null,
  status: 'pending',
  attempts: 1,
  start_at: null,
  end_at: null,
  usage: null,
  run_id: null,
  error: null,
  busy: 0,
  waited: 0,
  waitingSince: null,
  ...fields,
})
const at = (second: number): string => `2026-01-01T00:00:${String(second).padStart(2, '0')}.000Z`
const done = (id: string, busy: number): TaskRecord => task(id, { status: 'completed', start_at: at(0), busy })
const say = (...tasks: TaskRecord[]): string =>
  describeCause(suspectOf(tasks, now), { elapsedMs: 60_000, expectedMs: 4_000, detail: '' })

test('the leaf that is under way longest is suspected, even if a finished leaf took longer', () => {
  const waiting = task('later', {})
  const tasks = [
    done('done', 50_000),
    task('young', { status: 'running', start_at: at(50) }),
    task('old', { status: 'running', start_at: at(20) }),
  ]
  assert.equal(say(...tasks, waiting), '60 s so far, where 4.0 s were expected. old has been under way for 40 s.')
})

test('a leaf that waits for a person is no suspect, and its waits do not count once it goes on', () => {
  const asking = task('asking', { status: 'running', start_at: at(0), waitingSince: new Date(at(5)) })
  const working = task('working', { status: 'running', start_at: at(40) })
  assert.match(say(asking, working), /working has been under way for 20 s\.$/)
  assert.match(say({ ...asking, waitingSince: null, waited: 50_000 }, working), /working has been under way for 20 s/)
})

test('the cause gives the id of a leaf, its name if it differs, and its attempts', () => {
  assert.match(
    say(task('root/1', { name: 'fetch', status: 'running', start_at: at(0), attempts: 3 })),
    /fetch \(root\/1\) has been under way for 60 s, now in attempt 3\.$/,
  )
})

test('where none is under way it is the one that was tried most often, then the slowest, then the first', () => {
  const failed = task('flaky', { status: 'failed', start_at: at(1), attempts: 4, error: 'refused', busy: 10 })
  assert.match(say(done('slow', 9_000), failed, done('quick', 1)), / flaky was tried 4 times: refused\.$/)
  assert.match(say(done('slow', 9_000), done('quick', 1)), /slow took longest: 9\.0 s\.$/)
  assert.match(say(task('first', {}), task('second', {})), /Nothing has begun; first would be first\.$/)
  assert.match(say(), /Nothing of it has begun\.$/)
})

test('a stage is slow if items wait before it', () => {
  assert.equal(slowestStage([0, 0, 0]), 0)
  assert.equal(slowestStage([1, 0, 0]), 1)
  assert.equal(slowestStage([300, 200, 100]), 2)
  // The items in the hands of the last stage at this moment do not count as waiting.
  assert.equal(slowestStage([200, 100, 99]), 1)
})

test('the stages of a pipeline are found by its id, or if it is the only one', () => {
  const f = { type: 'task', function: 'f' } as const
  const one: BuiltInNode = { type: 'pipeline', id: 'one', source: [], stages: [f], on_error: 'stop' }
  const two: BuiltInNode = { type: 'pipeline', source: [], stages: [f, f], on_error: 'stop' }
  const both: BuiltInNode = { type: 'parallel', branches: [one, { type: 'loop', body: two, max_iterations: 2 }] }
  assert.equal(stagesOf(both, 'one#2~1', builtInPatterns)?.length, 1)
  assert.equal(stagesOf(both, 'root/1/1', builtInPatterns), null)
  const alone: BuiltInNode = { type: 'sequential', steps: [f, two] }
  assert.equal(stagesOf(alone, 'root/1', builtInPatterns)?.length, 2)
  assert.equal(stagesOf(f, 'root', builtInPatterns), null)
})

test('an adaptive part is found at any depth', () => {
  const f = { type: 'task', function: 'f' } as const
  const adaptive: BuiltInNode = { type: 'adaptive', workers: 2, tasks: [f], switch: true }
  const deep: BuiltInNode = { type: 'sequential', steps: [f, { type: 'loop', max_iterations: 2, body: adaptive }] }
  const without: BuiltInNode = { type: 'parallel', branches: [f] }
  const count = (root: BuiltInNode): number => topologiesIn(root, builtInPatterns).length
  assert.deepEqual([count(deep), count(without)], [1, 0])
})
