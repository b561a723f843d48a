// The commands that continue work, against a real server: resume, fork, try-now, and the decisions of the inbox.
import assert from 'node:assert/strict'
import { before, test } from 'node:test'
import type { Run } from '../../src/kernel/run.ts'
import type { Task } from '../../src/kernel/task.ts'
import { atEnd } from '../kit/at-end.ts'
import { askAboutBeginning } from '../kit/begin-anew.ts'
import { CLOSED, type ClosableProvider, startClosableProvider } from '../kit/closable-provider.ts'
import { createCommandKit, noTerminal, type Said } from '../kit/command.ts'
import { createUnusedDatabase } from '../kit/database.ts'
import { type Plan, startFakeModel } from '../kit/fake-model.ts'
import { type Ledger, startLedger } from '../kit/ledger-server.ts'
import { type Muster, repository, startMuster } from '../kit/process.ts'
import { until } from '../kit/until.ts'

const wholeFile = { after: atEnd }
let muster: Muster
let databaseUrl = ''
let ledger: Ledger
let provider: ClosableProvider
let lab = ''
let key = ''
const { run, begin, onTerminal } = createCommandKit(
  wholeFile,
  () => muster,
  () => ({ MUSTER_KEY: key }),
)

before(async () => {
  const model = await startFakeModel(wholeFile)
  ledger = await startLedger(wholeFile)
  provider = await startClosableProvider(wholeFile, model.url)
  const env = { MUSTER_DEMO: 'off', MUSTER_APP: `${repository}test/fixtures/ledger-app.ts` }
  databaseUrl = await createUnusedDatabase()
  muster = await startMuster(wholeFile, { databaseUrl, env })
  await api('POST /api/providers', { name: 'planned', kind: 'openai-compatible', base_url: model.url })
  await api('POST /api/providers', { name: 'kitchen', kind: 'openai-compatible', base_url: provider.url })
  lab = `/api/projects/${(await api<{ id: string }>('POST /api/projects', { name: 'Lab' })).id}`
  key = (await api<{ key: string }>(`POST ${lab}/keys`, { name: 'daily', role: 'admin' })).key
  const model1 = { provider: 'planned', name: 'any' }
  for (const agent of [
    { name: 'Payer', model: model1, tools: ['pay', 'post', 'look'] },
    { name: 'Careful', model: model1, tools: ['post'], require_approval: ['post'] },
    { name: 'Lost', prompt_id: 'nowhere' },
    { name: 'Cook', model: { provider: 'kitchen', name: 'any' } },
  ])
    await api(`POST ${lab}/agents`, agent)
})

async function api<Body = Record<string, unknown>>(route: string, body?: unknown): Promise<Body> {
  const answer = await muster.call<Body>(route, body === undefined ? {} : { body })
  assert.ok(answer.status < 300, `${route}: ${answer.text}`)
  return answer.body
}

const plan = (tag: string, ...steps: Plan['steps']): string => JSON.stringify({ tag, steps } satisfies Plan)
const call = (name: string, label: string) => ({ name, args: { url: ledger.url, label } })
const readRun = (id: string): Promise<Run> => api<Run>(`GET ${lab}/runs/${id}`)

function requireEnd(said: Said, code: number): void {
  assert.equal(said.code, code, `${said.stdout}${said.stderr}`)
}

/** The id in front of the command that continues a run. */
const nextId = ({ stderr }: Said): string =>
  /To continue it: muster resume ([0-9a-f-]{13})\n/.exec(stderr)?.[1] ?? assert.fail(stderr)

test('a failed run names the command that continues it; resume repeats nothing, and fork asks before it repeats', async () => {
  // The model refuses the step after the last one.
  const steps = [
    { say: 'I pay.', calls: [call('pay', 'a')] },
    { say: 'I post.', calls: [call('post', 'b')] },
  ]
  const failed = await run(['run', 'Payer', '--input', plan('failed', ...steps)])
  requireEnd(failed, 1)
  const resumed = await run(['resume', nextId(failed)])
  requireEnd(resumed, 1)
  assert.deepEqual([ledger.callsOf('a').length, ledger.callsOf('b').length], [1, 1])
  const again = await run(['resume', nextId(failed)])
  requireEnd(again, 4)
  assert.match(again.stderr, /This run was resumed already/)
  // By name the newest run is meant, if none is paused.
  requireEnd(await run(['resume', 'Payer']), 1)

  const forkIt = ['fork', nextId(failed), '--after-step', '1', '--detach']
  const refused = await run(forkIt)
  requireEnd(refused, 2)
  assert.match(refused.stderr, /may make this call a second time\. Add --yes to start it:\n {2}post .*"label":"b"/)
  const forked = await run([...forkIt, '--yes'])
  requireEnd(forked, 0)
  const forkId = forked.stdout.trim()
  const { forked_from: origin } = await readRun(forkId)
  assert.ok(origin?.startsWith(nextId(failed)))
  await until(async () => (await readRun(forkId)).completed_at !== null, 'the fork has ended')
  // A fork of the fork knows the calls of the original, too.
  const both = await run(['fork', forkId, '--after-step', '0'])
  requireEnd(both, 2)
  assert.match(both.stderr, /these 2 calls a second time\..*\n {2}pay .*"label":"a".*\n {2}post .*"label":"b"/)
  // A fork that repeats nothing asks nothing.
  requireEnd(await run(['fork', nextId(failed), '--after-step', '2', '--detach']), 0)
  requireEnd(await run(['fork', 'Payer']), 2)
  requireEnd(await run(['fork', 'Payer', '--after-step', '99']), 2)
})

test('on a terminal the fork waits for a yes', { skip: noTerminal }, async () => {
  const input = plan('asked', { say: 'I post.', calls: [call('post', 'asked')] }, { say: 'Done.' })
  const id = (await run(['run', 'Payer', '--input', input, '--json'])).stdout.match(/"id": ?"([^"]+)"/)?.[1] ?? ''
  const countForks = async (): Promise<number> =>
    (await api<{ items: Run[] }>(`GET ${lab}/runs`)).items.filter(({ forked_from }) => forked_from === id).length
  // Nobody types anything.
  const asked = await onTerminal(100, ['fork', id, '--after-step', '0', '--detach'])
  requireEnd(asked, 1)
  assert.match(asked.stdout, /this call a second time:.*post .*Start the fork\? \[y\/N\].*No fork was started/s)
  assert.equal(await countForks(), 0)
})

test('resume of an attempt at a blocked task sets the task to pending', async () => {
  await api(`PATCH ${lab}/settings`, { stuck_retry_limit: 0 })
  const agents = await api<{ items: { id: string; name: string }[] }>(`GET ${lab}/agents`)
  const lost = agents.items.find(({ name }) => name === 'Lost')?.id
  const task = await api<Task>(`POST ${lab}/tasks`, { title: 'Find it', assigned_to: lost })
  const attempts = async (): Promise<Run[]> => (await api<{ items: Run[] }>(`GET ${lab}/runs?agent_id=${lost}`)).items
  const isBlocked = async () => (await api<Task>(`GET ${lab}/tasks/${task.id}`)).status === 'blocked'
  await until(isBlocked, 'the task is blocked')
  const resumed = await run(['resume', 'Lost'])
  requireEnd(resumed, 0)
  assert.equal(resumed.stdout, 'The task "Find it" is pending again. Its next attempt continues the run.\n')
  await until(async () => (await attempts()).length === 2 && (await isBlocked()), 'the second attempt has failed')
})

test('a call that waits is shown with its arguments, and approved', { skip: noTerminal }, async () => {
  const steps = [{ say: 'I write.', calls: [call('post', 'careful')] }, { say: 'Done.' }]
  const held = await run(['run', 'Careful', '--input', plan('careful', ...steps)])
  requireEnd(held, 5)
  assert.match(held.stderr, /Waiting\. It waits for the approval of a call\.\n.*\nNext: muster approve [0-9a-f]{8}\n/)
  const inbox = await onTerminal(100, ['inbox'])
  assert.match(inbox.stdout, /post.*label: "careful"/s)
  const approved = await run(['approve', 'Careful'])
  requireEnd(approved, 0)
  assert.match(approved.stdout, /^Approved: post \{.*"label":"careful"\}\n$/)
  await until(async () => ledger.callsOf('careful').length === 1, 'the call is made')
})

test('a run that waited is followed beyond its pauses, to the next wait and to its end', async () => {
  const call1 = { say: 'I write.', calls: [call('post', 'first')] }
  const input = plan('twice', call1, { say: 'Again.', calls: [call('post', 'second')] }, { say: 'Done.' })
  const id = (await run(['run', 'Careful', '--input', input, '--detach'])).stdout.trim()
  const isHeld = async (): Promise<boolean> => (await readRun(id)).waiting_for === 'approval'
  await until(isHeld, 'the first call waits')
  requireEnd(await run(['approve', 'Careful']), 0)
  await until(async () => (await readRun(id)).step_count === 2 && (await isHeld()), 'the second call waits')
  const waiting = await run(['follow', id])
  requireEnd(waiting, 5)
  assert.equal(waiting.stdout, 'I write.\nAgain.\n')
  requireEnd(await run(['approve', 'Careful']), 0)
  await until(async () => (await readRun(id)).status === 'completed', 'the run ends')
  const followed = await run(['follow', id])
  requireEnd(followed, 0)
  assert.equal(followed.stdout, 'I write.\nAgain.\nDone.\n')
  assert.match(followed.stderr, /→ post .*"first".*\n← post .*\n→ post .*"second".*\n.*← post /s)
  const events = await run(['follow', id, '--json'])
  requireEnd(events, 0)
  const kinds = events.stdout.trimEnd().split('\n')
  assert.match(kinds.at(-1) ?? '', /"event":"run.completed"/)
})

test('work that would begin anew is decided with again or stop', { skip: noTerminal }, async () => {
  const { items } = await api<{ items: { id: string }[] }>(`GET ${lab}/agents`)
  const id = await askAboutBeginning(databaseUrl, lab.split('/').at(-1) ?? '', items[0]?.id ?? '')
  const inbox = await onTerminal(100, ['inbox'])
  assert.match(inbox.stdout, /Start over on.*muster answer [0-9a-f]{8} again.*muster answer [0-9a-f]{8} stop/s)
  const wrong = await run(['answer', id, 'perhaps'])
  requireEnd(wrong, 2)
  assert.match(wrong.stderr, /Answer with `again` or `stop`, not "perhaps"/)
  requireEnd(await run(['answer', id, 'stop']), 0)
  assert.equal((await api<Task>(`GET ${lab}/tasks/${id}`)).result, 'stop')
})

test('a run that waits for its provider is told while it is followed, and tries at once', async (t) => {
  provider.close()
  const started = await run(['run', 'Cook', '--input', plan('meal', { say: 'Served.' }), '--detach'])
  requireEnd(started, 0)
  const id = started.stdout.trim()
  await until(async () => (await readRun(id)).waiting_for === 'provider kitchen', 'the run waits')
  const words = /waits for provider kitchen, next try \d\d:\d\d:\d\d: .*/
  const listed = await run(['runs', '--agent', 'Cook'])
  requireEnd(listed, 0)
  assert.match(listed.stdout, words)
  assert.ok(listed.stdout.includes(CLOSED))
  const following = await begin(t, ['follow', 'Cook'])
  await until(() => words.test(following.stderr()), 'the wait is told')
  provider.open()
  const tried = await run(['try-now', 'Cook'])
  requireEnd(tried, 0)
  assert.match(tried.stdout, /tries its provider again now\.\n$/)
  assert.deepEqual((await following.exited).code, 0)
  assert.match(following.stdout(), /Served\./)
  const late = await run(['try-now', id])
  requireEnd(late, 4)
})

test('a flow run tells that a leaf waits for its provider, and its name tries all waiting runs at once', async (t) => {
  provider.close()
  const cook = { type: 'task', agent: 'Cook', input: plan('flow', { say: 'Served.' }) }
  await api(`POST ${lab}/flows`, { name: 'Dinner', root: { type: 'parallel', branches: [{ ...cook, id: 'soup' }] } })
  const following = await begin(t, ['flow', 'run', 'Dinner'])
  const words = /soup waits for provider kitchen, next try .*\nTo try at once: muster try-now (\S+)\n/
  await until(() => words.test(following.stderr()), 'the wait is told')
  assert.doesNotMatch(following.stderr(), /person|inbox/)
  for (const meal of ['one', 'two']) await run(['run', 'Cook', '--input', plan(meal, { say: 'Served.' }), '--detach'])
  const waiting = async () => (await api<{ items: Run[] }>(`GET ${lab}/runs?pause_reason=unavailable`)).items.length
  await until(async () => (await waiting()) === 3, 'three runs wait')
  provider.open()
  const [, id = ''] = words.exec(following.stderr()) ?? []
  const tried = await run(['try-now', id])
  requireEnd(tried, 0)
  assert.equal(tried.stdout.split('tries its provider again now.').length - 1, 1)
  assert.equal((await following.exited).code, 0)
  const ended = await run(['try-now', id])
  requireEnd(ended, 4)
  assert.match(ended.stderr, /No run of a leaf of .* waits for a provider\. A function .*\(muster\.ask\) has no run/)
})

test('a resumed flow run says which leaves are kept, and a list counts the completed leaves alone', async () => {
  const steps = [
    { type: 'task', id: 'first', agent: 'Payer', input: plan('kept', { say: 'Done.' }) },
    { type: 'task', id: 'second', agent: 'Lost', input: 'x' },
    { type: 'task', id: 'third', agent: 'Lost', input: 'x' },
  ]
  await api(`POST ${lab}/flows`, { name: 'Half', root: { type: 'sequential', steps } })
  const failed = await run(['flow', 'run', 'Half'])
  requireEnd(failed, 1)
  assert.match(failed.stderr, /first started\nfirst completed \(.*\)\nsecond started\nsecond failed: /)
  const listed = await run(['flow', 'runs', '--flow', 'Half'])
  assert.match(listed.stdout, /\tfailed\t1\/3\t/)
  const resumed = await run(['resume', 'Half'])
  requireEnd(resumed, 1)
  assert.match(resumed.stderr, /first: kept\nsecond started\n/)
  assert.doesNotMatch(resumed.stderr, /first (started|completed)/)
})
