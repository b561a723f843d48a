import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestApp } from '../../../test/kit/app.ts'
import { testTool } from '../../../test/kit/run-worker.ts'
import type { ListedTool } from '../../kernel/listed-tool.ts'

const kit = await createTestApp({ tools: [testTool('post', async () => null, { effect: 'unsafe' })] })
const project = await kit.createProject()
const viewer = await kit.createKey(project.id, 'viewer')
const entry = { name: 'read', description: 'Reads.', input_schema: { type: 'object' }, effect: 'readonly', hash: 'h' }
await kit.pool.query(
  `insert into mcp_servers (id, project_id, name, url, set_by_instance_admin, tools)
   values (gen_random_uuid(), $1, 'files', 'http://127.0.0.1:1', true, $2)`,
  [project.id, JSON.stringify([entry])],
)
const list = async (token: string): Promise<Map<string, ListedTool>> => {
  const { status, body, text } = await kit.call<{ items: ListedTool[] }>(`GET /api/projects/${project.id}/tools`, {
    token,
  })
  assert.equal(status, 200, text)
  return new Map(body.items.map((tool) => [tool.name, tool]))
}

test('the tools of a project are listed with their source and effect, under the names that agents write', async () => {
  const tools = await list(viewer.key)
  const effects = ['http_fetch', 'object_get', 'object_create', 'spawn_agent', 'ask_human', 'finish_loop', 'post'].map(
    (name) => [name, tools.get(name)?.source, tools.get(name)?.effect],
  )
  assert.deepEqual(effects, [
    ['http_fetch', 'built_in', 'unsafe'],
    ['object_get', 'built_in', 'readonly'],
    ['object_create', 'built_in', 'keyed'],
    ['spawn_agent', 'built_in', 'keyed'],
    ['ask_human', 'built_in', 'keyed'],
    ['finish_loop', 'built_in', 'readonly'],
    ['post', 'app', 'unsafe'],
  ])
  assert.deepEqual(tools.get('mcp:files/read'), {
    name: 'mcp:files/read',
    source: 'mcp',
    description: 'Reads.',
    effect: 'readonly',
    input_schema: { type: 'object' },
  })
  assert.deepEqual(Object.keys(tools.get('spawn_agent')?.input_schema.properties ?? {}).sort(), [
    ...['agent', 'input', 'max_steps', 'resume_run_id', 'timeout'],
  ])
  // An agent may have every listed tool.
  const agent = { name: 'all', tools: [...tools.keys()] }
  assert.equal((await kit.call(`POST /api/projects/${project.id}/agents`, { body: agent })).status, 201)
})

test('a project does not see the tools of another project’s servers', async () => {
  const other = await kit.createProject('Another')
  const { body } = await kit.call<{ items: ListedTool[] }>(`GET /api/projects/${other.id}/tools`)
  assert.ok(body.items.length > 0 && !body.items.some(({ source }) => source === 'mcp'))
  const key = await kit.createKey(other.id, 'admin')
  assert.equal((await kit.call(`GET /api/projects/${project.id}/tools`, { token: key.key })).status, 404)
})

test('B6: every kind of tool has a name, a source, a description, an effect and a schema', async () => {
  const tools = [...(await list(viewer.key)).values()]
  assert.deepEqual([...new Set(tools.map(({ source }) => source))], ['built_in', 'app', 'mcp'])
  for (const { name, description, effect, input_schema } of tools) {
    assert.ok(description.length > 0 && input_schema.type === 'object', name)
    assert.ok(['readonly', 'keyed', 'unsafe'].includes(effect), name)
  }
})

test('B6: large lists of tools come a page at a time, our own tools on the first', async () => {
  const { id } = await kit.createProject('With large servers')
  const large = { ...entry, description: 'x'.repeat(3 * 1_048_576) }
  await kit.pool.query(
    `insert into mcp_servers (id, project_id, name, url, set_by_instance_admin, tools)
     select gen_random_uuid(), $1, name, 'http://127.0.0.1:1', true, $2 from unnest(array['a', 'b', 'c']) as name`,
    [id, JSON.stringify([large])],
  )
  const page = async (query: string) => {
    const { body } = await kit.call<{ items: ListedTool[]; next_cursor: string | null }>(
      `GET /api/projects/${id}/tools${query}`,
    )
    const [mcp, ours] = [true, false].map((isMcp) => body.items.filter(({ source }) => (source === 'mcp') === isMcp))
    return { servers: mcp?.map(({ name }) => name), ours: ours?.length, next: body.next_cursor }
  }
  const first = await page('')
  assert.deepEqual([first.servers, first.next], [['mcp:a/read', 'mcp:b/read'], 'b'])
  assert.ok(first.ours)
  assert.deepEqual(await page('?cursor=b'), { servers: ['mcp:c/read'], ours: 0, next: null })
  assert.equal((await kit.call(`GET /api/projects/${id}/tools?cursor=%2F`)).status, 400)
})
