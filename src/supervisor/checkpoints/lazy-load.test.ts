import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { repository } from '../../../test/kit/process.ts'

/** A program that prints the LangChain packages it loads; a hook sees every loaded module. */
const PROGRAM = `
  import { registerHooks } from 'node:module'
  const loaded = new Set()
  registerHooks({ load: (url, context, next) => {
    const name = /node_modules\\/(@langchain\\/[^/]+|langsmith|undici|ajv|pino-pretty)\\//.exec(url)?.[1]
    if (name) loaded.add(name)
    return next(url, context)
  } })
  await import('./src/bin/serve.ts')
  const { createCheckpoints } = await import('./src/supervisor/checkpoints/checkpoints.ts')
  const checkpoints = createCheckpoints({ pool: null, log: null })
  const before = [...loaded]
  await checkpoints.saverFor('x')
  console.log(JSON.stringify({ before, after: [...loaded] }))
  process.exit()`

test('LangGraph is loaded with the first saver, and not with the server', async () => {
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', PROGRAM], {
    cwd: repository,
  })
  const { before, after } = JSON.parse(stdout)
  assert.deepEqual(before, [])
  assert.ok(after.includes('@langchain/langgraph-checkpoint'), String(after))
})
