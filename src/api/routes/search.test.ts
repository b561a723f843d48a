// GET /search: one text over agents, runs, flows, flow runs, objects and tasks.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestApp } from '../../../test/kit/app.ts'
import { withClient } from '../../../test/kit/test-server.ts'
import { newId } from '../../kernel/id.ts'
import type { Run } from '../../kernel/run.ts'
import type { SearchAnswer, SearchHit } from '../../kernel/search.ts'

type Made = { id: string }
type Refusal = { error: { code: string; message: string } }

const kit = await createTestApp({ functions: { f: () => 1 } })
const project = await kit.createProject('Mine')
const base = `/api/projects/${project.id}`
const viewer = (await kit.createKey(project.id, 'viewer')).key
const search = (q: string, more: Record<string, string> = {}, token: string | null = viewer) =>
  kit.call<SearchAnswer & Refusal>(`GET ${base}/search?${new URLSearchParams({ q, ...more })}`, { token })
async function find(q: string, more: Record<string, string> = {}): Promise<SearchHit[]> {
  // A search that took too long, on a busy machine, says which kinds are missing.
  for (let asked = 1; ; asked++) {
    const { status, body, text } = await search(q, more)
    assert.equal(status, 200, text)
    assert.equal(body.q, q)
    if (body.incomplete.length === 0) return body.items
    assert.ok(asked < 10, `still incomplete: ${body.incomplete.join(', ')}`)
  }
}
const found = async (q: string, more?: Record<string, string>): Promise<string[]> =>
  (await find(q, more)).map(({ kind, title }) => `${kind} ${title}`)
async function make<Body extends Made>(path: string, body: object, at = base): Promise<Body> {
  const answer = await kit.call<Body>(`POST ${at}${path}`, { body, headers: { prefer: 'respond-async' } })
  assert.ok(answer.status < 300, answer.text)
  return answer.body
}

const writer = await kit.createAgent(project.id, { name: 'Writer', role: 'Writes letters' })
const ghost = await kit.createAgent(project.id, { name: 'Ghost writer', enabled: false })
const percent = await kit.createAgent(project.id, { name: '100% _sure_ \\o/' })
const root = { type: 'task', function: 'f' }
const flow = await make('/flows', { name: 'Nightly letters', root })
const run = await make<Run>(`/agents/${writer.id}/trigger`, { input: 'Two lines about Österreich.' })
const jsonRun = await make<Run>(`/agents/${percent.id}/trigger`, {
  input: { order: 'Quarterly figures', lines: [1, 2] },
})
await make('/flow-runs', { flow_id: flow.id, input: { topic: 'Volcanoes' } })
const loose = await make('/flow-runs', { root, input: 'Earthquakes' })
await make('/objects', { type: 'Ticket', key: 'T-17', properties: { title: 'The login page is slow' } })
const note = await make('/objects', { type: 'Note', properties: { name: 'Grüße', text: 'A volcano erupts' } })
const task = await make('/tasks', { title: 'Call the plumber', description: 'The tap of the kitchen drips.' })
await kit.pool.query(
  `insert into tasks (id, project_id, kind, title, created_by) values ($1, $2, 'suggestion', 'Update of ticket T-17', '{}'),
     ($3, $2, 'escalation', 'May I send the letters?', '{}')`,
  [newId(), project.id, newId()],
)

// Another tenant has the same things.
const theirs = await kit.createProject('Theirs')
const theirBase = `/api/projects/${theirs.id}`
const theirWriter = await kit.createAgent(theirs.id, { name: 'Writer' })
await make(`/agents/${theirWriter.id}/trigger`, { input: 'Two lines about Österreich.' }, theirBase)
await make('/flows', { name: 'Nightly letters', root }, theirBase)
await make('/objects', { type: 'Ticket', key: 'T-17', properties: { title: 'The login page is slow' } }, theirBase)
await make('/tasks', { title: 'Call the plumber' }, theirBase)

test('an entry has what a list shows: kind, id, title, one line, status, time', async () => {
  const [agent] = await find('writer', { kind: 'agent' })
  assert.deepEqual(agent, {
    kind: 'agent',
    id: writer.id,
    title: 'Writer',
    detail: 'Writes letters',
    status: 'active',
    at: writer.created_at,
  })
  const [shown] = await find('österreich')
  const { status, created_at: at } = (await kit.call<Run>(`GET ${base}/runs/${run.id}`)).body
  assert.deepEqual(shown, {
    kind: 'run',
    id: run.id,
    title: 'Writer',
    detail: 'Two lines about Österreich.',
    status,
    at,
  })
})

test('the name comes first, then names that begin so, then names that have it, then the rest', async () => {
  assert.deepEqual(await found('writer'), ['agent Writer', 'agent Ghost writer', 'run Writer'])
  assert.deepEqual(await found('WRITER', { kind: 'agent' }), ['agent Writer', 'agent Ghost writer'])
  assert.deepEqual(
    (await find('ghost')).map(({ status }) => status),
    ['disabled'],
  )
})

test('of thousands, what is equal to the text comes first, however old; then what begins with it', async () => {
  const { id } = await kit.createProject('Many')
  const agent = await kit.createAgent(id, { name: 'Worker' })
  // The higher the number, the newer the row.
  await kit.pool.query(
    `insert into tasks (id, project_id, kind, title, status, completed_at, created_by, created_at)
     select gen_random_uuid(), $1, 'work', 'Person task ' || n, 'completed', now(), '{}', now() - (5000 - n) * interval '1 min'
     from generate_series(1, 5000) n`,
    [id],
  )
  await kit.pool.query(
    `insert into agent_runs (id, project_id, agent_id, trigger, input, status, created_at, completed_at)
     select gen_random_uuid(), $1, $2, '{"type":"manual"}', to_jsonb(case
       when n = 9 then E'Read  the delivery\nnote, and then check the invoice.'
       when n = 10 then 'Read the letter. ' || (select string_agg(md5(i::text), ' ') from generate_series(1, 500) i)
       when n > 4900 then 'Check the invoice, then read the delivery note ' || n
       else 'Run number ' || n end), 'completed', now() - (5000 - n) * interval '1 min', now()
     from generate_series(1, 5000) n`,
    [id, agent.id],
  )
  await kit.pool.query(
    `insert into flow_runs (id, project_id, root, input, progress, timeout, status, created_at, completed_at)
     select gen_random_uuid(), $1, '{"type":"task"}', to_jsonb('Topic ' || n), '{}', 1, 'completed',
       now() - (3000 - n) * interval '1 min', now()
     from generate_series(1, 3000) n`,
    [id],
  )
  const first = async (q: string, kind: 'task' | 'run' | 'flow_run', limit = '3'): Promise<(string | null)[]> => {
    const { items } = (
      await kit.call<SearchAnswer>(`GET /api/projects/${id}/search?${new URLSearchParams({ q, kind, limit })}`)
    ).body
    return items.map((hit) => (kind === 'task' ? hit.title : hit.detail))
  }
  assert.deepEqual(await first('person TASK 17', 'task'), ['Person task 17', 'Person task 1799', 'Person task 1798'])
  assert.deepEqual(await first('task 499', 'task', '2'), ['Person task 4999', 'Person task 4998'])
  assert.deepEqual(await first('run number 17', 'run'), ['Run number 17', 'Run number 1799', 'Run number 1798'])
  assert.deepEqual(await first('Topic 17', 'flow_run'), ['Topic 17', 'Topic 1799', 'Topic 1798'])
  assert.deepEqual(await first('Read the delivery note', 'run', '2'), [
    'Read the delivery note, and then check the invoice.',
    'Check the invoice, then read the delivery note 5000',
  ])
  assert.equal((await first('read the letter', 'run')).length, 1, 'a long input is found by its beginning')
  assert.deepEqual(await first('Run number 17 of nobody', 'run'), [])
})

test('a text that has the words side by side comes before one that has them apart', async () => {
  const near = await make('/tasks', { title: 'One', description: 'Paint the green door.' })
  const apart = await make('/tasks', { title: 'Two', description: 'The door is green.' })
  assert.deepEqual(
    (await find('green door')).map(({ id }) => id),
    [near.id, apart.id],
  )
})

test('things of every kind are found by their words, whatever the case', async () => {
  assert.deepEqual(await found('letters'), [
    'flow Nightly letters',
    'flow_run Nightly letters',
    'task May I send the letters?',
  ])
  assert.deepEqual(await found('volcano'), ['flow_run Nightly letters', 'object Grüße'])
  assert.deepEqual(await found('earthquakes'), ['flow_run task'])
  assert.deepEqual(await found('FIGURES quarterly'), [`run ${percent.name}`], 'all words, in any order')
  assert.deepEqual(await found('login slow'), ['object T-17'])
  assert.deepEqual(await found('kitchen tap'), ['task Call the plumber'])
  assert.deepEqual(await found('grüSSe'), ['object Grüße'])
  assert.deepEqual(await found('ticket', { kind: 'object' }), ['object T-17'], 'by type')
  assert.deepEqual(await found('nothing like this'), [])
  assert.deepEqual(await found('letters nothing'), [])
})

test('a key finds its object, and the suggestion about it', async () => {
  assert.deepEqual(await found('T-17'), ['object T-17', 'task Update of ticket T-17'])
  const [first, second] = await find('t-17')
  assert.deepEqual([first?.detail, second?.detail], ['Ticket · The login page is slow', 'suggestion'])
})

test('the beginning of an id finds its thing, with and without dashes and in capitals', async () => {
  for (const [kind, id] of [
    ['agent', ghost.id],
    ['run', jsonRun.id],
    ['flow', flow.id],
    ['flow_run', loose.id],
    ['object', note.id],
    ['task', task.id],
  ] as const) {
    for (const q of [id, id.toUpperCase(), id.replaceAll('-', ''), id.slice(0, 30), id.slice(0, 24)]) {
      const ids = (await find(q, { kind, limit: '20' })).map((hit) => hit.id)
      assert.ok(ids.includes(id), `${kind} ${q}`)
    }
    const [first] = await find(id)
    assert.deepEqual([first?.kind, first?.id], [kind, id])
  }
  assert.deepEqual(await find(`${ghost.id}0`), [])
  assert.deepEqual(await find(theirWriter.id), [], 'the id of another project finds nothing')
  assert.deepEqual(await found(writer.id.slice(0, 7), { kind: 'agent' }), [], 'seven letters are no beginning')
})

test('wildcards and quotes are plain characters', async () => {
  assert.deepEqual(await found('100%', { kind: 'agent' }), [`agent ${percent.name}`])
  assert.deepEqual(await found('_sure_', { kind: 'agent' }), [`agent ${percent.name}`])
  assert.deepEqual(await found('\\o/', { kind: 'agent' }), [`agent ${percent.name}`])
  for (const q of ['%', '_', 'w%r', 'w_iter', '%%%', '\\']) {
    const titles = (await find(q)).map(({ title }) => title)
    assert.ok(
      titles.every((title) => title === percent.name),
      `${q}: ${titles}`,
    )
  }
  for (const q of ["'", '"', "' or 1=1 --", ':*', 'a & b | !c', '(', '<->', '\u202e', '🙂', "it's"]) await find(q)
})

test('a blank text finds nothing; a missing or overlong one is refused', async () => {
  for (const q of ['', ' ', '\t \n']) assert.deepEqual(await find(q), [])
  for (const query of [
    '',
    `?q=${'x'.repeat(201)}`,
    '?q=a&kind=key',
    '?q=a&limit=21',
    '?q=a&limit=0',
    '?q=%00',
    '?q=a&p=1',
  ]) {
    const { status, body } = await kit.call<Refusal>(`GET ${base}/search${query}`, { token: viewer })
    assert.deepEqual([status, body.error.code], [400, 'INVALID_REQUEST'], query)
  }
})

test('each kind has at most as many things as asked for, the newest of equals', async () => {
  const made: string[] = []
  for (let place = 0; place < 7; place++) made.push((await make('/tasks', { title: 'Water the plants' })).id)
  const newest = made.reverse()
  assert.deepEqual(
    (await find('plants')).map(({ id }) => id),
    newest.slice(0, 5),
  )
  assert.deepEqual(
    (await find('plants', { limit: '2' })).map(({ id }) => id),
    newest.slice(0, 2),
  )
})

test('deleted agents and objects are not found; their runs are, under their name', async () => {
  const agent = await kit.createAgent(project.id, { name: 'Temporary' })
  const object = await make('/objects', { type: 'Thing', key: 'temporary-thing', properties: {} })
  const lasting = await make<Run>(`/agents/${agent.id}/trigger`, { input: 'Something lasting' })
  assert.deepEqual(await found('temporary'), ['agent Temporary', 'object temporary-thing', 'run Temporary'])
  await kit.call(`DELETE ${base}/agents/${agent.id}`)
  await kit.call(`DELETE ${base}/objects/${object.id}`)
  assert.deepEqual(await found('temporary'), [])
  assert.deepEqual(
    (await find('lasting')).map(({ id, title }) => [id, title]),
    [[lasting.id, 'Temporary']],
  )
  for (const id of [agent.id, object.id]) assert.deepEqual(await find(id), [])
})

test('long texts are cut to a line', async () => {
  await make('/tasks', { title: `Marathon ${'x'.repeat(400)}`, description: `one\n\n  two\t${'y'.repeat(4_000)}` })
  const [hit] = await find('marathon')
  assert.ok((hit?.title.length ?? 0) <= 200 && hit?.title.endsWith('…'))
  assert.ok((hit?.detail?.length ?? 0) <= 200)
  assert.match(hit?.detail ?? '', /^work · one two y+…$/)
})

test('the search is for people and keys of the project', async () => {
  const stranger = (await kit.createKey(theirs.id, 'admin')).key
  assert.equal((await search('writer', {}, null)).status, 401)
  assert.equal((await search('writer', {}, stranger)).status, 404)
})

test('a kind whose time is up is named, the others are answered; alone it is 503', async () => {
  await withClient(kit.url, async (client) => {
    await client.query('begin; lock table tasks in access exclusive mode')
    const partial = await search('writer')
    assert.equal(partial.status, 200, partial.text)
    assert.deepEqual(partial.body.incomplete, ['task'])
    assert.ok(partial.body.items.some(({ id }) => id === writer.id))
    const alone = await search('writer', { kind: 'task' })
    assert.deepEqual([alone.status, alone.body.error.code], [503, 'UNAVAILABLE'])
    assert.match(alone.body.error.message, /took too long/)
    assert.ok(alone.headers['retry-after'])
    await client.query('rollback')
  })
  assert.deepEqual(await found('plumber'), ['task Call the plumber'])
})
