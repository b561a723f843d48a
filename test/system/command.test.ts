// The commands of every day against a real server: in a pipe, with --json, on a terminal.
import assert from 'node:assert/strict'
import { before } from 'node:test'
import { stripVTControlCharacters } from 'node:util'
import type { Run } from '../../src/kernel/run.ts'
import type { Task } from '../../src/kernel/task.ts'
import { atEnd } from '../kit/at-end.ts'
import { createCommandKit, noTerminal, requirePlain, type Said } from '../kit/command.ts'
import { createUnusedDatabase } from '../kit/database.ts'
import { type FakeModel, type Plan, startFakeModel } from '../kit/fake-model.ts'
import { type Muster, startMuster } from '../kit/process.ts'
import { inSystem, inTest as test } from '../kit/tiers.ts'
import { until } from '../kit/until.ts'

const wholeFile = { after: atEnd }
const offline = { provider: 'offline', name: 'offline' }
const planned = { provider: 'planned', name: 'planned' }
const HOSTILE = '\u001b]0;owned\u0007\u001b[2Jrain\u009b31m'

let muster: Muster
let model: FakeModel
let lab = ''
let key = ''
const agents: Record<string, string> = {}

const kit = createCommandKit(
  wholeFile,
  () => muster,
  () => ({ MUSTER_KEY: key }),
)
const { run, begin, onTerminal } = kit

before(async () => {
  model = await startFakeModel(wholeFile)
  muster = await startMuster(wholeFile, { databaseUrl: await createUnusedDatabase(), env: { MUSTER_DEMO: 'off' } })
  await api('POST /api/providers', { name: 'planned', kind: 'openai-compatible', base_url: model.url })
  lab = `/api/projects/${(await api<{ id: string }>('POST /api/projects', { name: 'Lab' })).id}`
  await api('POST /api/projects', { name: 'Shop' })
  key = (await api<{ key: string }>(`POST ${lab}/keys`, { name: 'daily', role: 'admin' })).key
  for (const agent of [
    { name: 'Writer', role: 'a writer', model: offline },
    { name: 'Planned', model: planned, tools: ['ask_human', 'spawn_agent'], token_allocation: 1_000_000 },
    { name: '雨の人', role: 'שלום', model: offline },
    { name: 'Suggester', model: planned, tools: ['object_create'], execution_mode: 'suggest' },
  ])
    agents[agent.name] = (await api<{ id: string }>(`POST ${lab}/agents`, agent)).id
})

async function api<Body = Record<string, unknown>>(route: string, body?: unknown): Promise<Body> {
  const answer = await muster.call<Body>(route, body === undefined ? {} : { body })
  assert.ok(answer.status < 300, `${route}: ${answer.text}`)
  return answer.body
}

let plans = 0
const plan = (...steps: Plan['steps']): string => JSON.stringify({ tag: `plan ${++plans}`, steps } satisfies Plan)
const ask = (question: string): string =>
  plan({ say: 'I must ask. ', calls: [{ name: 'ask_human', args: { question } }] }, { say: 'Thank you.' })

/** Two runs whose ids begin alike. Ids begin with their time, in letters that last for a minute. */
async function startTwins(): Promise<string[]> {
  const start = async (): Promise<string> =>
    (await api<Run>(`POST ${lab}/agents/${agents.Writer}/trigger`, { input: 'one line' })).id
  for (;;) {
    const twins = [await start(), await start()]
    if (commonBeginning(twins).length >= 8) return twins
  }
}

function commonBeginning([one = '', other = '']: readonly string[]): string {
  const end = [...one].findIndex((letter, place) => letter !== other[place])
  return one.slice(0, end).replace(/-$/, '')
}

function requireEnd(said: Said, code: number): void {
  assert.equal(said.code, code, `${said.stdout}${said.stderr}`)
  requirePlain(said)
}
const lines = ({ stdout }: Said): string[] => stdout.trimEnd().split('\n')

test('agents, run, runs and follow, in a pipe: plain lines, by name and by the first letters of an id', async () => {
  const listed = await run(['agents'])
  requireEnd(listed, 0)
  assert.deepEqual(
    lines(listed).map((line) => line.split('\t')[0]),
    ['Writer', 'Planned', '雨の人', 'Suggester'],
  )
  const ran = await run(['run', 'writer', 'two lines about rain'])
  requireEnd(ran, 0)
  assert.match(ran.stdout, /^I have read your message, "two lines about rain".*\n$/)
  assert.match(ran.stderr, /^Writer · [0-9a-f-]{13}\ncompleted · 1 step · \d+ tokens · .* · [0-9a-f-]{13}\n$/)
  const runs = await run(['runs', '--agent', 'Writer'])
  requireEnd(runs, 0)
  const [id = '', name, status] = lines(runs)[0]?.split('\t') ?? []
  assert.deepEqual([name, status], ['Writer', 'completed'])
  for (const reference of [id, id.slice(0, 18), 'Writer']) {
    const followed = await run(['follow', reference])
    requireEnd(followed, 0)
    assert.equal(followed.stdout, ran.stdout)
  }
})

test('a run that asks stops with code 5 and names the command that resolves it', async () => {
  const paused = await run(['run', 'Planned', '--input', ask(`Shall we go on? ${HOSTILE}`)])
  requireEnd(paused, 5)
  assert.equal(paused.stdout, 'I must ask. \n')
  assert.match(
    paused.stderr,
    /\nWaiting\. It waits for the answer of a person\.\nShall we go on\? ␛\]0;owned␇␛\[2Jrain/,
  )
  const [, task = ''] = /\nNext: muster answer ([0-9a-f]{8}) "…"\n/.exec(paused.stderr) ?? []
  const inbox = await run(['inbox'])
  requireEnd(inbox, 0)
  assert.match(inbox.stdout, new RegExp(`^${task}-.*\tquestion\tPlanned\t.*\tShall we go on\\?`))
  const answered = await run(['answer', task, 'Yes.'])
  requireEnd(answered, 0)
  const [, runId = ''] = /muster follow (\S+)/.exec(answered.stderr) ?? []
  const followed = await run(['follow', runId, '--wait'])
  requireEnd(followed, 0)
  assert.equal(followed.stdout, 'I must ask. \nThank you.\n')
  const late = await run(['answer', task, 'No.'])
  requireEnd(late, 2)
  assert.match(late.stderr, /^muster: There is no open question "/)
})

inSystem('a flow run shows its tasks in a pipe, and ends with its output', async () => {
  const ran = await run(['flow', 'run', 'swarm_test', '--input', '{"subject": "isLeap"}'])
  requireEnd(ran, 0)
  assert.match(ran.stdout, /^I was asked to put what these tests found into one verdict/)
  assert.match(ran.stderr, /^swarm_test · \S+\n/)
  assert.match(ran.stderr, /clarity started\n/)
  assert.match(ran.stderr, /completed · 6 of 6 leaves/)
  const bad = await run(['flow', 'run', 'research'])
  requireEnd(bad, 1)
  assert.match(bad.stderr, /\nfailed: .*input\.question/)
})

test('an ambiguous id, an unknown name, a wrong key and no server each have their own exit code', async () => {
  const twins = await startTwins()
  const ambiguous = await run(['follow', commonBeginning(twins)])
  requireEnd(ambiguous, 2)
  assert.match(ambiguous.stderr, /^muster: "[0-9a-f-]{8,}" means \d+ runs\. Choose one by the letters of its id:\n {2}/)
  assert.match(ambiguous.stderr, /\n {2}[0-9a-f-]{13,} {2}Writer, \w+, .* ago\n/)
  const both = await run(['run', commonBeginning([agents.Writer ?? '', agents.Planned ?? '']), 'x'])
  requireEnd(both, 2)
  assert.match(both.stderr, /means \d agents\..*\n {2}[0-9a-f-]{13,} {2}/)
  const unknown = await run(['run', 'Wirter', 'x'])
  requireEnd(unknown, 2)
  assert.equal(unknown.stderr, 'muster: There is no agent "Wirter". Did you mean "Writer"?\n')
  const wrong = await run(['agents'], { MUSTER_KEY: 'nonsense' })
  requireEnd(wrong, 4)
  assert.match(wrong.stderr, /^muster: http:\S+ does not accept the key from MUSTER_KEY/)
  const away = await run(['agents'], { MUSTER_URL: 'http://127.0.0.1:1', MUSTER_KEY: key })
  requireEnd(away, 3)
  assert.match(away.stderr, /^muster: http:\/\/127\.0\.0\.1:1 does not answer \(.*\)\.\n$/)
  const nowhere = await run(['agents'], { MUSTER_DATA_DIR: '/nonexistent/data' })
  requireEnd(nowhere, 3)
  assert.match(nowhere.stderr, /^muster: No server runs on \/nonexistent\/data\. Start it with "npm start", or .*\n$/)
})

inSystem('a project is the one of the key, the only one, or the one that --project names', async () => {
  const admin = { MUSTER_KEY: muster.adminToken() }
  const several = await run(['agents'], admin)
  requireEnd(several, 2)
  assert.equal(several.stderr, 'muster: There are 2 projects. Name one with --project:\n  Shop\n  Lab\n')
  requireEnd(await run(['agents', '--project', 'shop'], admin), 0)
  assert.equal(lines(await run(['agents', '--project', 'Lab'], admin)).length, 4)
  const remote = await run(['agents'], { MUSTER_URL: muster.url, MUSTER_DATA_DIR: '/nonexistent' })
  assert.equal(lines(remote).length, 4, remote.stderr)
})

test('printed commands name the project where there are several', { skip: noTerminal }, async (t) => {
  const admin = { MUSTER_KEY: muster.adminToken() }
  const paused = await run(['run', 'Planned', '--input', ask('Which one?')], { ...admin, MUSTER_PROJECT: 'Lab' })
  requireEnd(paused, 5)
  const [, task = ''] = /\nNext: muster answer ([0-9a-f]{8}) "…" --project Lab\n/.exec(paused.stderr) ?? []
  const inbox = await onTerminal(100, ['inbox', '--project', 'lab'], { ...admin, NO_COLOR: '1' })
  assert.ok(inbox.stdout.includes(`muster answer ${task} "…" --project Lab`), inbox.stdout)
  const answered = await run(['answer', task, 'This one.', '--project', 'Lab'], admin)
  requireEnd(answered, 0)
  assert.match(answered.stderr, /muster follow \S+ --project Lab\n$/)
  model.hold('several')
  const input = plan({ say: 'One two three four. ', gate: 'several' })
  const command = await begin(t, ['run', 'Planned', '--input', input, '--project', 'Lab'], admin)
  await until(() => model.held('several') === 1, 'the model is in the middle of its answer')
  command.signal('SIGINT')
  await command.exited
  assert.match(command.stderr(), /muster follow \S+ --project Lab\nTo stop it: muster cancel \S+ --project Lab\n$/)
  model.release('several')
})

inSystem('--json is one document, or a line per event, and errors are JSON too', async () => {
  const read = async (args: readonly string[], code = 0): Promise<Record<string, unknown>> => {
    const said = await run([...args, '--json'])
    requireEnd(said, code)
    assert.equal(said.stderr, '', args.join(' '))
    return JSON.parse(said.stdout)
  }
  const ended = await read(['run', 'Writer', HOSTILE])
  assert.deepEqual([ended.status, ended.input], ['completed', HOSTILE])
  const events = await run(['follow', String(ended.id), '--json'])
  requireEnd(events, 0)
  const told = lines(events).map((line): { event: string; id: string } => JSON.parse(line))
  assert.deepEqual(
    told.filter(({ event }) => event !== 'token').map(({ event, id }) => [event, id]),
    [
      ['run.started', '1'],
      ['step.completed', '2'],
      ['run.completed', '3'],
    ],
  )
  for (const list of [['agents'], ['runs'], ['flow', 'runs'], ['inbox'], ['projects']])
    assert.ok(Array.isArray((await read(list)).items), list.join(' '))
  assert.ok(Array.isArray((await read(['flows'])).templates))
  assert.equal((await read(['run', 'Planned', '--input', ask('Really?')], 5)).pause_reason, 'human')
  const failed = await run(['run', 'nobody', 'x', '--json'])
  requireEnd(failed, 2)
  assert.deepEqual(JSON.parse(failed.stderr), {
    error: { code: 'NOT_FOUND', message: 'There is no agent "nobody".', details: null },
  })
})

test('Ctrl-C stops the following and not the run', async (t) => {
  model.hold('ctrl-c')
  const input = plan({ say: 'One two three four. ', gate: 'ctrl-c' })
  const command = await begin(t, ['run', 'Planned', '--input', input])
  await until(() => model.held('ctrl-c') === 1, 'the model is in the middle of its answer')
  command.signal('SIGINT')
  assert.deepEqual(await command.exited, { code: 130, signal: null })
  assert.match(
    command.stderr(),
    /\nStopped following\. The run continues: muster follow (\S+)\nTo stop it: muster cancel \1\n$/,
  )
  const [, id = ''] = /muster follow (\S+)/.exec(command.stderr()) ?? []
  model.release('ctrl-c')
  const followed = await run(['follow', id])
  requireEnd(followed, 0)
  assert.equal(followed.stdout, 'One two three four. \n')
})

inSystem('a run that fails ends with code 1; one that used up its steps is resumed', async () => {
  const failed = await run(['run', 'Planned', '--input', plan()])
  requireEnd(failed, 1)
  assert.match(failed.stderr, /\nFailed: MODEL_ERROR .*nothing is planned/)
  const two = plan(
    { say: 'First. ', calls: [{ name: 'spawn_agent', args: { agent: 'Writer', input: 'one line' } }] },
    { say: 'Second.' },
    { say: 'Third.' },
  )
  const paused = await run(['run', 'Planned', '--input', two, '--max-steps', '1'])
  requireEnd(paused, 5)
  assert.match(paused.stderr, /\nPaused\. It reached its limit of 1 step\.\nNext: muster resume \S+ --max-steps 20\n/)
  const [, id = ''] = /muster resume (\S+)/.exec(paused.stderr) ?? []
  const resumed = await run(['resume', id, '--max-steps', '20'])
  requireEnd(resumed, 0)
  assert.match(resumed.stdout, /Third\.\n$/)
  const again = await run(['resume', id])
  requireEnd(again, 4)
  assert.match(again.stderr, /^muster: This run was resumed already; the run [\w-]{36} continues it\.\n$/)
})

inSystem('the text of sub-runs stands on the notes, and only the run itself on the output', async () => {
  const delegating = plan(
    { say: 'I delegate. ', calls: [{ name: 'spawn_agent', args: { agent: 'Writer', input: 'one line' } }] },
    { say: 'It is done.' },
  )
  const ran = await run(['run', 'Planned', '--input', delegating])
  requireEnd(ran, 0)
  assert.equal(ran.stdout, 'I delegate. \nIt is done.\n')
  assert.match(
    ran.stderr,
    /\n→ spawn_agent \{"agent":"Writer","input":"one line"\}\n {2}Writer │ starts\n {2}Writer │ I have read/,
  )
})

inSystem('a run under way is cancelled by the name of its agent, if it is the only one', async (t) => {
  model.hold('cancel')
  const input = plan({ say: 'One two three four. ', gate: 'cancel' })
  const command = await begin(t, ['run', 'Planned', '--input', input])
  await until(() => model.held('cancel') === 1, 'the model is in the middle of its answer')
  // Runs that wait for people are under way too.
  const waiting = (await api<{ items: Run[] }>(`GET ${lab}/runs?agent_id=${agents.Planned}&status=paused`)).items
  for (const { id } of waiting.filter(({ completed_at }) => completed_at === null))
    requireEnd(await run(['cancel', id]), 0)
  const cancelled = await run(['cancel', 'planned'])
  requireEnd(cancelled, 0)
  assert.match(cancelled.stdout, /^\S+ is cancelled\.\n$/)
  assert.equal((await command.exited).code, 1)
  assert.match(command.stderr(), /\nCancelled\.\n/)
  const none = await run(['cancel', 'Planned'])
  requireEnd(none, 2)
  assert.equal(none.stderr, 'muster: Planned has no run that is under way.\n')
  model.release('cancel')
})

inSystem('suggestions are approved and rejected by the agent, words of the title, or letters of the id', async () => {
  const suggest = (title: string): string =>
    plan(
      {
        say: 'I suggest. ',
        calls: [
          {
            name: 'object_create',
            args: { type: 'Note', key: title, properties: { title }, reasoning: `Because ${HOSTILE}` },
          },
        ],
      },
      { say: 'Done.' },
    )
  requireEnd(await run(['run', 'Suggester', '--input', suggest('about rain')]), 0)
  const approved = await run(['approve', 'suggester'])
  requireEnd(approved, 0)
  assert.match(approved.stdout, /^Approved: Create Note about rain\n$/)
  for (const title of ['about snow', 'about wind'])
    requireEnd(await run(['run', 'Suggester', '--input', suggest(title)]), 0)
  const several = await run(['approve', 'Suggester'])
  requireEnd(several, 2)
  assert.match(several.stderr, /means 2 open suggestions/)
  const rejected = await run(['reject', 'snow', '--reason', 'It is summer.'])
  requireEnd(rejected, 0)
  const tasks = (await api<{ items: Task[] }>(`GET ${lab}/tasks?kind=suggestion&status=rejected`)).items
  assert.match(JSON.stringify(tasks[0]), /It is summer\./)
  const [open] = (await api<{ items: Task[] }>(`GET ${lab}/tasks?kind=suggestion&status=pending`)).items
  requireEnd(await run(['approve', open?.id.slice(0, 8) ?? '']), 0)
  const late = await run(['approve', tasks[0]?.id ?? ''])
  requireEnd(late, 4)
  assert.match(late.stderr, /^Not approved: /)
})

inSystem('top-up, halt, unhalt, api, --detach, a file and the standard input', async () => {
  const topped = await run(['top-up', 'Planned', '500'])
  requireEnd(topped, 0)
  assert.match(topped.stdout, /^Planned is \w+ and has [\d,]+ tokens left\.\n$/)
  requireEnd(await run(['top-up', 'Planned', 'many']), 2)
  requireEnd(await run(['halt']), 0)
  const halted = await run(['run', 'Writer', 'x'])
  requireEnd(halted, 5)
  assert.match(halted.stderr, /The project is halted\.\nNext: muster unhalt\n/)
  requireEnd(await run(['unhalt']), 0)
  const stopped = await run(['api', 'POST', 'agents/@Writer/stop'])
  requireEnd(stopped, 0)
  assert.equal(JSON.parse(stopped.stdout).status, 'paused')
  requireEnd(await run(['api', 'POST', 'agents/@Writer/start']), 0)
  const wrong = await run(['api', 'PATCH', 'settings', '{"stuck_retry_limt": 1}'])
  requireEnd(wrong, 2)
  assert.match(wrong.stderr, /Did you mean "stuck_retry_limit"\?/)
  const detached = await run(['run', 'Writer', 'in the background', '--detach'])
  requireEnd(detached, 0)
  requireEnd(await run(['follow', detached.stdout.trim()]), 0)
  const file = await run(['run', 'Writer', '--input', `@${muster.dataDir}/nothing`])
  requireEnd(file, 2)
  assert.match(file.stderr, /cannot be read/)
})

inSystem('a viewer may look and not act', async () => {
  const viewer = await api<{ key: string }>(`POST ${lab}/keys`, { name: 'viewer', role: 'viewer' })
  const env = { MUSTER_KEY: viewer.key }
  requireEnd(await run(['agents'], env), 0)
  requireEnd(await run(['run', 'Writer', 'x'], env), 4)
})

inSystem('wrong arguments end with code 2, and help shows examples', async () => {
  for (const args of [['run'], ['run', 'Writer'], ['runs', '--status', 'done'], ['follow', '01a1'], ['flow', 'run']])
    assert.equal((await run(args)).code, 2, args.join(' '))
  const help = await run(['run', '--help'])
  requireEnd(help, 0)
  assert.match(help.stdout, /\nExamples:\n {2}muster run Writer "two lines about rain"\n/)
  const all = await run(['--help'])
  assert.match(all.stdout, /\nEvery day:\n[\s\S]*\nThe server:\n[\s\S]*\nExit codes: 0 done/)
})

for (const columns of [40, 200]) {
  inSystem(`a terminal of ${columns} columns shows lists that fit, and a live line`, { skip: noTerminal }, async () => {
    const width = (line: string): number =>
      [...line].reduce((sum, sign) => sum + (/[\u3040-\u9fff]/.test(sign) ? 2 : 1), 0)
    for (const args of [['agents'], ['runs'], ['flows'], ['flow', 'runs'], ['projects']]) {
      const { stdout, code } = await onTerminal(columns, args)
      assert.equal(code, 0, stdout)
      for (const line of stripVTControlCharacters(stdout).replaceAll('\u200e', '').split(/\r?\n/))
        assert.ok(width(line) <= columns, `${width(line)}: ${line}`)
    }
    const flow = await onTerminal(columns, ['flow', 'run', 'swarm_test', '--example'])
    assert.equal(flow.code, 0, flow.stdout)
    assert.match(stripVTControlCharacters(flow.stdout), /░ \d+\/\d+/)
    assert.ok(flow.stdout.includes('\r\u001b[2K'), 'the live line is removed')
  })
}

inSystem('NO_COLOR takes the colours away, and hostile text stays text', { skip: noTerminal }, async () => {
  await run(['run', 'Planned', '--input', ask(HOSTILE)])
  for (const args of [['inbox'], ['runs'], ['follow', 'Planned']]) {
    const { stdout } = await onTerminal(80, args, { NO_COLOR: '1' })
    const text = stdout.replaceAll('\r\n', '\n').replaceAll('\r\u001b[2K', '')
    requirePlain({ code: 0, stdout: text, stderr: '' })
    assert.match(text, /␛/)
  }
  const coloured = await onTerminal(80, ['runs'])
  assert.ok(coloured.stdout.includes('\u001b[2m'), coloured.stdout)
})
