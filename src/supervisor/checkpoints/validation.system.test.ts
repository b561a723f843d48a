import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { test } from 'node:test'
import { createTestDatabase } from '../../../test/kit/database.ts'
import { repository } from '../../../test/kit/process.ts'
import { insertProject } from '../../../test/kit/runs.ts'

test("LangGraph's own validation suite passes, with its tests of delta channels", async () => {
  const { url, pool } = await createTestDatabase()
  const program = ['--test-reporter=tap', 'test/fixtures/checkpointer-suite.ts', url, await insertProject(pool)]
  // Without this the suite would report to this test file's own run.
  const { NODE_TEST_CONTEXT: _, ...env } = process.env
  const suite = spawn(process.execPath, program, { cwd: repository, env, stdio: ['ignore', 'pipe', 'pipe'] })
  const [output, errors, [code]] = await Promise.all([text(suite.stdout), text(suite.stderr), once(suite, 'exit')])
  const failed = [...output.matchAll(/^ *not ok .*(\n +.*)*/gm)].map(([lines]) => lines)
  const counted = (what: string): number => Number(new RegExp(`^# ${what} (\\d+)$`, 'm').exec(output)?.[1])
  assert.deepEqual(failed, [], errors)
  assert.equal(code, 0, errors)
  assert.deepEqual({ skipped: counted('skipped'), todo: counted('todo') }, { skipped: 0, todo: 0 })
  assert.ok(counted('pass') > 700, `only ${counted('pass')} tests were run`)
})
