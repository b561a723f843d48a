// /openapi.json against the app itself, against the standard, and against a client generated from it.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { test } from 'node:test'
import { Validator } from '@seriousme/openapi-schema-validator'
import { ADMIN_TOKEN, createTestApp } from '../../../test/kit/app.ts'
import { atEnd } from '../../../test/kit/at-end.ts'

interface Operation {
  summary?: string
  tags?: string[]
  security?: Record<string, string[]>[]
  requestBody?: { content: Record<string, { schema: Shown }> }
  responses: Record<string, { content?: Record<string, { schema: Shown }> }>
}

interface Shown {
  $ref?: string
  type?: string
  properties?: Record<string, Shown>
  required?: string[]
  items?: Shown
  anyOf?: Shown[]
  oneOf?: Shown[]
  additionalProperties?: unknown
  description?: string
  default?: unknown
}

interface Document {
  openapi: string
  paths: Record<string, Record<string, Operation>>
  components: { schemas: Record<string, Shown> }
}

const routes: string[] = []
const kit = await createTestApp({ onRoute: (route) => routes.push(route) })
const document = (await kit.call<Document>('GET /openapi.json', { token: null })).body
const documented = Object.entries(document.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({ name: `${method.toUpperCase()} ${path}`, operation })),
)

test('the document validates as OpenAPI 3.1', async () => {
  const validator = new Validator()
  const { valid, errors } = await validator.validate(structuredClone(document) as never) // typed by this test
  assert.equal(valid, true, JSON.stringify(errors))
  assert.equal(validator.version, '3.1')
})

test('the validator refuses a document that is not quite OpenAPI', async () => {
  const broken = structuredClone(document) as unknown as { paths: Record<string, unknown> }
  broken.paths['/healthz'] = { get: { responses: { 200: { content: {} } } } }
  assert.equal((await new Validator().validate(broken)).valid, false, 'an answer without a description')
})

test('every route is in the document, except pages and the document itself', () => {
  const isPage = (route: string): boolean =>
    /^GET (\/|\/account|\/(assets|projects|invitations|resets)\/\*|\/docs.*|\/openapi\.json|\/sign-in\/:token)$/.test(
      route,
    )
  const expected = routes.filter((route) => !/^(HEAD|OPTIONS) /.test(route) && !isPage(route))
  const asDocumented = (route: string): string => route.replaceAll(/:(\w+)/g, '{$1}')
  assert.ok(expected.length > 30, `only ${expected.length} routes were found`)
  assert.deepEqual(documented.map(({ name }) => name).sort(), expected.map(asDocumented).sort())
})

const NOUNS = [
  ...['Agent', 'Run', 'Step', 'Task', 'Object', 'Relationship', 'Flow', 'FlowNode', 'FlowRun', 'Alert', 'Trace'],
  ...['Project', 'Settings', 'Key', 'Member', 'Provider', 'McpServer', 'Hook', 'Schedule', 'Prompt', 'System'],
  ...['Eval', 'AuditEntry', 'Message', 'Error', 'Tool', 'AgentInput', 'FlowInput', 'FlowRunInput', 'TaskInput'],
]

test('B6: every noun is a named component, and so is every body and every answer that is an object', () => {
  const { schemas } = document.components
  assert.deepEqual(
    NOUNS.filter((noun) => !(noun in schemas)),
    [],
  )
  const unnamed = documented.flatMap(({ name, operation }) => {
    const contents = [operation.requestBody?.content, ...Object.values(operation.responses).map((each) => each.content)]
    const shown = contents.flatMap((content) => content?.['application/json']?.schema ?? [])
    return shown.some((each) => nameless(each)) ? [name] : []
  })
  assert.deepEqual(unnamed, [])
})

/** An object without a name; a page of a list is one without a name whose items must have one. */
function nameless(shown: Shown): boolean {
  if (shown.$ref) return false
  const { items, next_cursor, ...others } = shown.properties ?? {}
  if (items && next_cursor && Object.keys(others).length === 0) return nameless(items.items ?? {})
  const members = [...(shown.anyOf ?? []), ...(shown.oneOf ?? [])]
  return shown.properties !== undefined || members.some(nameless)
}

test('B6: every reference leads to a component, and every component is referred to', () => {
  const refs = new Set([...JSON.stringify(document).matchAll(/"#\/components\/(\w+)\/(\w+)"/g)].map((all) => all[0]))
  const there = Object.keys(document.components.schemas).map((name) => `"#/components/schemas/${name}"`)
  assert.deepEqual([...refs].sort(), there.sort())
})

test('B6: a component that is sent otherwise than it is answered is two, and so are those that refer to it', () => {
  const { ModelChoice, ModelChoiceInput, Specialist, SpecialistInput, Agent, AgentInput } = document.components.schemas
  assert.deepEqual(ModelChoice?.required, ['provider', 'name', 'max_output_tokens'])
  assert.deepEqual(ModelChoiceInput?.required, ['provider', 'name'])
  const models = [Specialist, SpecialistInput, Agent, AgentInput].map(
    (each) => each?.properties?.model?.anyOf?.[0]?.$ref,
  )
  const [answered, sent] = ['#/components/schemas/ModelChoice', '#/components/schemas/ModelChoiceInput']
  assert.deepEqual(models, [answered, sent, answered, sent])
  assert.ok(!('CreatorInput' in document.components.schemas), 'the same both ways')
})

test('the trigger of a run has its fields by name', () => {
  const { Run } = document.components.schemas
  const { properties = {}, required } = Run?.properties?.trigger ?? {}
  assert.deepEqual(required, ['type'])
  for (const name of ['scheduled_at', 'hook_id', 'entry_id', 'flow_run_id', 'task_id', 'resumed_from', 'forked_from'])
    assert.match(properties[name]?.description ?? '', /^With type /, name)
})

test('every field of an agent and of the settings has a description', () => {
  const { AgentInput, AgentPatch, Settings, SettingsPatch } = document.components.schemas
  for (const noun of [AgentInput, AgentPatch, Settings, SettingsPatch]) {
    const fields = Object.entries(noun?.properties ?? {})
    assert.ok(fields.length > 20)
    for (const [name, field] of fields) assert.match(field.description ?? '', /\S\.$/, name)
  }
})

test('a default of a request stands in its description, because generators take fields with the keyword as required', () => {
  const { ModelChoice, ModelChoiceInput, AgentInput } = document.components.schemas
  const { description, ...tokens } = ModelChoiceInput?.properties?.max_output_tokens ?? {}
  assert.match(description ?? '', /Default: 4096\.$/)
  assert.ok(!('default' in tokens))
  assert.equal(ModelChoice?.properties?.max_output_tokens?.default, 4096, 'an answer keeps the keyword')
  const bodies = documented.flatMap(({ operation }) => operation.requestBody?.content['application/json']?.schema ?? [])
  const asked = [
    ...bodies.map(({ $ref = '' }) => document.components.schemas[$ref.split('/').at(-1) ?? '']),
    AgentInput,
  ]
  const withDefault = asked.flatMap((each) =>
    Object.values(each?.properties ?? {}).filter((field) => 'default' in field),
  )
  assert.deepEqual(withDefault, [])
})

for (const { name, operation } of documented) {
  test(`${name} has a summary, a tag, one success and the error envelope`, () => {
    assert.match(operation.summary ?? '', /\S/)
    assert.equal(operation.tags?.length, 1)
    const successes = Object.keys(operation.responses).filter((status) => /^2\d\d$/.test(status))
    // A route that may answer before its run has ended answers 202 then; where there is nothing to follow, 204; a PUT
    // that creates, 201.
    const isOne = successes.length === 1 || ['200,202', '200,204', '200,201'].includes(successes.join())
    assert.ok(isOne, Object.keys(operation.responses).join())
    const failure = operation.responses.default?.content?.['application/json']?.schema
    assert.deepEqual(failure, { $ref: '#/components/schemas/Error' })
  })

  test(`${name} asks for the credentials that the document names`, async () => {
    const route = name.replaceAll(/\{\w+\}/g, 'nothing')
    const schemes = operation.security?.flatMap((scheme) => Object.keys(scheme)) ?? []
    assert.ok(['', 'session', 'bearer,session'].includes(schemes.join()), schemes.join())
    const anonymous = await kit.call(route, { token: null })
    assert.equal(anonymous.status === 401, schemes.length > 0, `without credentials: ${anonymous.status}`)
    // The token of the instance admin opens every route but those for people alone.
    if (schemes.length > 0) {
      const bearer = await kit.call(route)
      assert.equal(bearer.status === 403, !schemes.includes('bearer'), `with a token: ${bearer.status}`)
    }
  })
}

/** The bodies of README that create agents, as they stand there. */
const readme = await readFile('README.md', 'utf8')
const agentBodies = [...readme.matchAll(/^muster api POST agents '([^']*\})'/gm)].map(([, body = '']) => body)
assert.ok(agentBodies.length >= 4, `${agentBodies.length} bodies were found`)

const GOOD_PROGRAM = `
import createClient from 'openapi-fetch'
import type { components, paths } from './api.ts'

const [baseUrl = '', token = ''] = process.argv.slice(2)
const client = createClient<paths>({ baseUrl, headers: { authorization: \`Bearer \${token}\` } })

const project = await client.POST('/api/projects', { body: { name: 'Made by a generated client' } })
if (!project.data) throw new Error(project.error.error.message)
const path = { id: project.data.id }
const key = await client.POST('/api/projects/{id}/keys', { params: { path }, body: { name: 'a key', role: 'viewer' } })
if (!key.data) throw new Error(key.error.error.message)
const shown: string = key.data.key
const list = await client.GET('/api/projects/{id}/keys', { params: { path, query: { limit: 10 } } })
const cursor: string | null | undefined = list.data?.next_cursor
const settings = await client.PATCH('/api/projects/{id}/settings', { params: { path }, body: { poll_interval: 5000 } })
const halted = await client.POST('/api/projects/{id}/halt', { params: { path } })
const revoked = await client.DELETE('/api/projects/{id}/keys/{keyId}', {
  params: { path: { ...path, keyId: key.data.id } },
})
const systems = await client.GET('/api/projects/{id}/systems', { params: { path } })
const cases = [{ task: 'Count.', expect: { status: 'DONE' as const, max_steps: 2 } }]
const made = await client.POST('/api/projects/{id}/evals', {
  params: { path },
  body: { name: 'an eval', variants: ['blue', 'green'], cases },
})
const evalPath = { ...path, evalId: made.data?.id ?? '' }
const read = await client.GET('/api/projects/{id}/evals/{evalId}', { params: { path: evalPath } })
const passRate: number | null | undefined = read.data?.variants.blue?.pass_rate
const headers = { 'x-project-id': path.id }
const layout = await client.POST('/v1/genui/layout', { headers, body: { context: { scenario: 'generic' } } })
const title = layout.data?.components.find((component) => component.type === 'text')
const unknown = await client.GET('/v1/agent/runs/{run_id}', { headers, params: { path: { run_id: 'nothing' } } })
const answer: 'RUNNING' | 'DONE' | 'ESCALATE' | 'FAILED' | undefined = unknown.data?.result.status
const prompt = await client.POST('/v1/prompts/get', {
  headers,
  body: { prompt_id: 'supervisor_planner', variant_id: 'blue' },
})
type Schemas = components['schemas']
export const fromReadme: Schemas['AgentInput'][] = [${agentBodies.join()}]
const input: Schemas['AgentInput'] = { name: 'A', flow_type: 'sequential', steps: [{ prompt: 'Look.' }] }
const agent = await client.POST('/api/projects/{id}/agents', { params: { path }, body: input })
const steps: Schemas['AgentStep'][] | undefined = agent.data?.steps
const runs = await client.GET('/api/projects/{id}/runs', { params: { path } })
const costs: (number | null)[] | undefined = runs.data?.items.map((run: Schemas['Run']) => run.usage.cost_usd)
const leaf: Schemas['FlowNode'] = { type: 'task', function: 'muster.ask', args: { prompt: 'Ask.' } }
const loop: Schemas['FlowNode'] = { type: 'loop', body: leaf, max_iterations: 2 }
const root: Schemas['FlowNode'] = { type: 'sequential', steps: [loop, { type: 'parallel', branches: [leaf, loop] }] }
const flow = await client.POST('/api/projects/{id}/flows', { params: { path }, body: { name: 'F', root } })
const typesOf = (node: Schemas['FlowNode']): string[] => {
  switch (node.type) {
    case 'sequential':
      return [node.type, ...node.steps.flatMap(typesOf)]
    case 'parallel':
      return [node.type, ...node.branches.flatMap(typesOf)]
    case 'loop':
      return [node.type, ...typesOf(node.body)]
    default:
      return [node.type]
  }
}
const answered = flow.data?.root
const second = answered?.type === 'sequential' ? answered.steps[1] : undefined
const branches: number | undefined = second?.type === 'parallel' ? second.branches.length : undefined
const gone = await client.GET('/api/projects/{id}', { params: { path: { id: 'nothing' } } })
const code: string | undefined = gone.error?.error.code
console.log(
  JSON.stringify({
    startsRight: shown.startsWith(key.data.prefix),
    names: list.data?.items.map((item) => item.name),
    cursor,
    pollInterval: settings.data?.poll_interval,
    isHalted: halted.data?.halted_at !== null,
    revoked: revoked.response.status,
    variants: systems.data?.items.map((item) => item.variant),
    passRate,
    title: title?.value,
    answer: answer ?? unknown.error?.error.code,
    prompt: prompt.data?.prompt.variant.id,
    code,
    prompts: steps?.map((step) => step.prompt),
    costs,
    nodes: typesOf(root),
    branches,
  }),
)
`

// Every line that says "wrong" must be refused, and no other line.
const WRONG_PROGRAM = `
import createClient from 'openapi-fetch'
import type { components, paths } from './api.ts'

const client = createClient<paths>({ baseUrl: 'http://127.0.0.1' })
const path = { id: '' }
await client.POST('/api/projects', { body: { title: 'wrong property' } })
await client.POST('/api/projects', { body: { name: 1, wrong_type: true } })
await client.POST('/api/projects', {}) // wrong: no body
await client.GET('/api/project') // wrong path
await client.PUT('/api/projects', { body: { name: 'wrong method' } })
await client.POST('/api/projects/{id}/keys', { params: { path }, body: { name: 'wrong role', role: 'owner' } })
await client.GET('/api/projects/{id}/keys', { params: { path, query: { limit: 'wrong type' } } })
await client.GET('/api/projects/{id}/keys', { params: { path: { project_id: 'wrong parameter' } } })
const { data, error } = await client.GET('/api/projects/{id}', { params: { path } })
console.log(data?.title) // wrong property of the answer
console.log(error?.error.status) // wrong property of the envelope
console.log(data?.name, error?.error.code)
type Schemas = components['schemas']
const agent: Schemas['AgentInput'] = { name: 'A', steps: [{ text: 'wrong property of a step' }] }
const leaf: Schemas['FlowNode'] = { type: 'task', function: 'f' }
const step: Schemas['FlowNode'] = { type: 'sequential', steps: [{ type: 'wrong type of a nested node' }] }
const loop: Schemas['FlowNode'] = { type: 'loop', body: leaf, max_iterations: 'wrong type' }
const cost = (run: Schemas['Run']): number => run.usage.cost_usd // wrong: may be null
console.log(agent, step, loop, cost)
`

test('a client generated from the document compiles, works, and refuses calls that the API does not have', async () => {
  const folder = await prepareClient(JSON.stringify(document))

  const good = await run('node_modules/.bin/tsc', ['--project', join(folder, 'good.json')])
  assert.equal(good.code, 0, good.output)

  const wrong = await run('node_modules/.bin/tsc', ['--project', join(folder, 'wrong.json')])
  const refused = [...wrong.output.matchAll(/wrong\.ts\((\d+),/g)].map((match) => Number(match[1]))
  const lines = (await readFile(join(folder, 'wrong.ts'), 'utf8')).split('\n')
  const expected = lines.flatMap((line, index) => (/wrong/.test(line) ? [index + 1] : []))
  assert.deepEqual([...new Set(refused)], expected, wrong.output)

  const address = await kit.app.listen({ port: 0, host: '127.0.0.1' })
  const ran = await run(process.execPath, [join(folder, 'good.ts'), address, ADMIN_TOKEN])
  assert.equal(ran.code, 0, ran.output)
  assert.deepEqual(JSON.parse(ran.output), {
    startsRight: true,
    names: ['a key'],
    cursor: null,
    pollInterval: 5000,
    isHalted: true,
    revoked: 204,
    variants: ['blue', 'green'],
    passRate: null,
    title: 'What is to be done?',
    answer: 'RUN_NOT_FOUND',
    prompt: 'blue',
    code: 'NOT_FOUND',
    prompts: ['Look.'],
    costs: [],
    nodes: ['sequential', 'loop', 'task', 'parallel', 'task', 'loop', 'task'],
    branches: 2,
  })
})

/** The project of an API client: the generated types, two programs, and TypeScript at its strictest. */
async function prepareClient(text: string): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'muster-client-'))
  atEnd(() => rm(folder, { recursive: true, force: true }))
  const compilerOptions = {
    strict: true,
    noEmit: true,
    module: 'nodenext',
    target: 'es2025',
    types: ['node'],
    lib: ['es2025', 'dom'],
    allowImportingTsExtensions: true,
    verbatimModuleSyntax: true,
    erasableSyntaxOnly: true,
    exactOptionalPropertyTypes: true,
    noUncheckedIndexedAccess: true,
  }
  const project = (file: string): string => JSON.stringify({ compilerOptions, files: [file] })
  await writeFile(join(folder, 'openapi.json'), text)
  await writeFile(join(folder, 'package.json'), '{"type":"module"}')
  await writeFile(join(folder, 'good.ts'), GOOD_PROGRAM)
  await writeFile(join(folder, 'good.json'), project('good.ts'))
  await writeFile(join(folder, 'wrong.ts'), WRONG_PROGRAM)
  await writeFile(join(folder, 'wrong.json'), project('wrong.ts'))
  await symlink(resolve('node_modules'), join(folder, 'node_modules'))
  const generator = 'test/client/node_modules/.bin/openapi-typescript'
  const made = await run(generator, [join(folder, 'openapi.json'), '--output', join(folder, 'api.ts')])
  assert.equal(made.code, 0, made.output)
  return folder
}

function run(command: string, args: readonly string[]): Promise<{ code: number; output: string }> {
  return new Promise((settle) => {
    execFile(command, args, (error, stdout, stderr) => {
      settle({ code: error === null ? 0 : Number(error.code ?? 1), output: stdout + stderr })
    })
  })
}
