// B8: agents and flows follow the code of the app module.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestApp } from '../../test/kit/app.ts'
import type { Flow } from '../flows/definition/flows.ts'
import { builtInPatterns } from '../flows/machine/built-in-patterns.ts'
import { type Agent, agentInput } from '../kernel/agent.ts'
import type { AppFlowDefinition } from '../kernel/app.ts'
import { type Log, silentLog } from '../kernel/log.ts'
import { type AppCode, followCode } from './follow-code.ts'

const { call, pool, services, createProject } = await createTestApp({ functions: { double: () => 2 } })

const functions = new Map([['double', () => 2]])
const double = { type: 'task', function: 'double' }
const rules = { agents: services.agentRules, flows: { functions, patterns: builtInPatterns } }

interface Module {
  project?: string
  file?: string
  agents?: Record<string, object>
  flows?: Record<string, object>
  log?: Log
}

const codeOf = ({ project, file = '/srv/app.ts', agents = {}, flows = {} }: Module): AppCode => ({
  path: 'app.ts',
  file,
  project: project ?? null,
  agents: Object.entries(agents).map(([name, agent]) => agentInput.parse({ name, ...agent })),
  flows: Object.entries(flows).map(([name, root]): AppFlowDefinition => ({ name, root })),
})
const start = (module: Module): Promise<void> => followCode(pool, codeOf(module), rules, module.log ?? silentLog)

async function projectsCalled(name: string): Promise<string[]> {
  const { body } = await call<{ items: { id: string; name: string }[] }>('GET /api/projects?limit=200')
  return body.items.filter((each) => each.name === name).map(({ id }) => `/api/projects/${id}`)
}
async function projectCalled(name: string): Promise<string> {
  const [path, ...others] = await projectsCalled(name)
  assert.deepEqual(others, [])
  return path ?? assert.fail(`there is no project ${name}`)
}
async function entries(path: string): Promise<{ agents: Record<string, Agent>; flows: Record<string, Flow> }> {
  const agents = await call<{ items: Agent[] }>(`GET ${path}/agents?limit=200`)
  const flows = await call<{ items: Flow[] }>(`GET ${path}/flows?limit=200`)
  return {
    agents: Object.fromEntries(agents.body.items.map((each) => [each.name, each])),
    flows: Object.fromEntries(flows.body.items.map((each) => [each.name, each])),
  }
}
const recording = (said: string[]): Log => {
  const note = (_: object, sentence?: string): void => void said.push(sentence ?? '')
  return { ...silentLog, info: note, warn: note, error: note }
}
const auditOf = async (id: string): Promise<string[]> => {
  const { rows } = await pool.query<{ action: string }>('select action from audit_log where target_id = $1', [id])
  return rows.map(({ action }) => action)
}

test('B8 without a project, and without the name of one, entries are put off, and that is said', async () => {
  const said: string[] = []
  await start({ agents: { Clerk: {} }, log: recording(said) })
  assert.match(said.join(), /^app\.ts: there is no project .* yet; they are made at the next start\./)
})

test('B8 a project that is missing is made, once; agents and flows in it say source "app"', async () => {
  const module = { project: 'Made', agents: { Clerk: { role: 'a clerk' } }, flows: { twice: double } }
  await Promise.all(Array.from({ length: 4 }, () => start(module)))
  const path = await projectCalled('Made')
  const { agents, flows } = await entries(path)
  assert.deepEqual([agents.Clerk?.source, agents.Clerk?.role, agents.Clerk?.enabled], ['app', 'a clerk', true])
  assert.deepEqual([flows.twice?.source, flows.twice?.root, flows.twice?.enabled], ['app', double, true])
  assert.deepEqual(await auditOf(agents.Clerk?.id ?? ''), ['agent.create'])
  assert.deepEqual(await auditOf(flows.twice?.id ?? ''), ['flow.create'])
  const own = await call<Agent>(`POST ${path}/agents`, { body: { name: 'Other' } })
  assert.equal(own.body.source, 'api')
})

test('B8 the code changes: the entry changes with it, keeps its id, and is not written again', async () => {
  const module = (role: string) => ({ project: 'Changed', agents: { Clerk: { role } }, flows: { twice: double } })
  await start(module('a clerk'))
  const path = await projectCalled('Changed')
  const before = await entries(path)
  const root = { type: 'sequential', steps: [double, double] }
  await start({ ...module('a head clerk'), flows: { twice: root } })
  const after = await entries(path)
  assert.deepEqual([after.agents.Clerk?.id, after.agents.Clerk?.role], [before.agents.Clerk?.id, 'a head clerk'])
  assert.deepEqual([after.flows.twice?.id, after.flows.twice?.root], [before.flows.twice?.id, root])
  await start({ ...module('a head clerk'), flows: { twice: root } })
  assert.deepEqual(await entries(path), after)
  assert.deepEqual(await auditOf(after.agents.Clerk?.id ?? ''), ['agent.create', 'agent.update'])
})

test('B8 requests change enabled alone; every other change, and DELETE, is 409 and says to change the code', async () => {
  const module = { project: 'Guarded', agents: { Clerk: {} }, flows: { twice: double } }
  await start(module)
  const path = await projectCalled('Guarded')
  const { agents, flows } = await entries(path)
  const [clerk, twice] = [`${path}/agents/${agents.Clerk?.id}`, `${path}/flows/${flows.twice?.id}`]
  const refusals = [
    await call(`PATCH ${clerk}`, { body: { role: 'a boss' } }),
    await call(`PATCH ${clerk}`, { body: { enabled: false, prompt: 'x' } }),
    await call(`DELETE ${clerk}`),
    await call(`PATCH ${twice}`, { body: { root: double } }),
    await call(`PATCH ${twice}`, { body: { name: 'thrice' } }),
    await call(`DELETE ${twice}`),
  ]
  for (const { status, text } of refusals) {
    assert.equal(status, 409, text)
    assert.match(text, /follows the code of the app module\. .* the code and start Muster again/)
  }
  assert.deepEqual(await entries(path), { agents, flows })
  for (const one of [clerk, twice]) {
    const off = await call<{ enabled: boolean }>(`PATCH ${one}`, { body: { enabled: false } })
    assert.deepEqual([off.status, off.body.enabled], [200, false])
  }
  const started = await call(`POST ${path}/flow-runs`, { body: { flow_id: flows.twice?.id } })
  assert.deepEqual([started.status, /is disabled/.test(started.text)], [409, true], started.text)
  // A start whose code is the same, or changed something else, leaves the switch as it is.
  await start(module)
  await start({ ...module, agents: { Clerk: { role: 'a clerk' } } })
  const still = await entries(path)
  assert.deepEqual(
    [still.agents.Clerk?.enabled, still.agents.Clerk?.role, still.flows.twice?.enabled],
    [false, 'a clerk', false],
  )
})

test('B8 tokens that people gave stay when the code changes something else', async () => {
  const module = (role: string) => ({ project: 'Budget', agents: { Clerk: { role, token_allocation: 100 } } })
  await start(module('a clerk'))
  const path = await projectCalled('Budget')
  const { agents } = await entries(path)
  await call(`POST ${path}/agents/${agents.Clerk?.id}/budget`, { body: { add: 50 } })
  await start(module('a head clerk'))
  const after = await entries(path)
  assert.deepEqual([after.agents.Clerk?.token_allocation, after.agents.Clerk?.role], [150, 'a head clerk'])
})

test('B8 entries that the code no longer has are disabled; those that come back are enabled; only gone ones may be deleted', async () => {
  const whole = { project: 'Fewer', agents: { Clerk: {}, Porter: {} }, flows: { twice: double } }
  await start(whole)
  const path = await projectCalled('Fewer')
  const { agents, flows } = await entries(path)
  await start({ project: 'Fewer', agents: { Clerk: {} } })
  const fewer = await entries(path)
  assert.deepEqual(
    [fewer.agents.Clerk?.enabled, fewer.agents.Porter?.enabled, fewer.flows.twice?.enabled],
    [true, false, false],
  )
  await start(whole)
  const again = await entries(path)
  assert.deepEqual(
    [again.agents.Porter?.id, again.agents.Porter?.enabled, again.flows.twice?.enabled],
    [agents.Porter?.id, true, true],
  )
  await start({ project: 'Fewer' })
  assert.equal((await call(`DELETE ${path}/agents/${agents.Porter?.id}`)).status, 204)
  assert.equal((await call(`DELETE ${path}/flows/${flows.twice?.id}`)).status, 204)
  await start(whole)
  const anew = await entries(path)
  assert.notEqual(anew.agents.Porter?.id, agents.Porter?.id)
  assert.equal(anew.flows.twice?.enabled, true)
})

test('B8 a name that a person gave already is left out and told in the log; all other entries are written', async () => {
  const { id } = await createProject('Taken')
  const path = `/api/projects/${id}`
  const person = await call<Agent>(`POST ${path}/agents`, { body: { name: 'Clerk', role: 'a person made it' } })
  const theirs = await call<Flow>(`POST ${path}/flows`, { body: { name: 'twice', root: double } })
  const root = { type: 'task', agent: 'Porter' }
  const module = {
    project: 'Taken',
    agents: { Clerk: { tools: ['nix'] }, Porter: {} },
    flows: { twice: root, thrice: root },
  }
  for (const starts of ['first', 'second']) {
    const said: string[] = []
    await start({ ...module, log: recording(said) })
    const advice =
      'which no app module made. Rename or delete that one, or choose another name in the code, and start Muster again.'
    assert.deepEqual(
      said.filter((sentence) => starts === 'second' || sentence.includes('left out')),
      [
        `app.ts: agent "Clerk" is left out: the project "Taken" has an agent of this name, ${advice}`,
        `app.ts: flow "twice" is left out: the project "Taken" has a flow of this name, ${advice}`,
      ],
      starts,
    )
    const { agents, flows } = await entries(path)
    assert.deepEqual([agents.Clerk, flows.twice], [person.body, theirs.body])
    assert.deepEqual([agents.Porter?.source, flows.thrice?.source], ['app', 'app'])
  }
  await call(`PATCH ${path}/flows/${theirs.body.id}`, { body: { name: 'theirs' } })
  await call(`DELETE ${path}/agents/${person.body.id}`)
  await start({ ...module, agents: { Clerk: {}, Porter: {} } })
  const { agents, flows } = await entries(path)
  assert.deepEqual([agents.Clerk?.source, flows.twice?.source, flows.theirs?.source], ['app', 'app', 'api'])
})

test('B8 a mistake names the file, the entry and the field, and the project that was to be made is not made', async () => {
  const wrong: [Module, RegExp][] = [
    [{ agents: { Writer: { tools: ['nix'] } } }, /agent "Writer": tools: There is no tool called "nix"\./],
    [
      { agents: { Writer: { flow_type: 'sequential' } } },
      /agent "Writer": steps are missing: a sequential agent needs them\.$/,
    ],
    [{ agents: { Writer: { model: { provider: 'nowhere', name: 'x' } } } }, /agent "Writer": model\.provider: /],
    [{ agents: { Writer: { trigger_type: 'schedule', cron_schedule: '61 * * * *' } } }, /agent "Writer": .*61/],
    [{ flows: { broken: { type: 'circle' } } }, /flow "broken": root has the type "circle"; types are /],
    [
      { flows: { broken: { type: 'parallel', branches: [{ type: 'task', function: 'triple' }, { type: 'circle' }] } } },
      /flow "broken": root\.branches\[0\]\.function: there is no function called triple.*; root\.branches\[1\]: has the type "circle"/,
    ],
    [
      { flows: { broken: { type: 'task', agent: 'Nobody' } } },
      /flow "broken": root\.agent: there is no agent called Nobody/,
    ],
  ]
  for (const [module, message] of wrong) {
    const refused = await start({ project: 'Mistaken', ...module }).catch((error: Error) => error)
    assert.ok(refused instanceof Error)
    assert.match(refused.message, new RegExp(`^app\\.ts: ${message.source}`))
  }
  assert.deepEqual(await projectsCalled('Mistaken'), [])
  // The agent is made with the flow that names it.
  await start({ project: 'Right', agents: { Writer: {} }, flows: { one: { type: 'task', agent: 'Writer' } } })
})

test('B8 all mistakes of a module are named at one start, each once', async () => {
  const module = {
    project: 'Mistaken',
    agents: {
      'S. Leeper': { trigger_type: 'schedule' },
      Smith: { tools: ['nix'] },
      Night: { flow_type: 'flow', flow: 'broken' },
    },
    flows: {
      broken: { type: 'task', function: 'triple' },
      fine: { type: 'task', agent: 'S. Leeper' },
      both: {
        type: 'parallel',
        branches: [
          { type: 'task', agent: 'S. Leeper' },
          { type: 'task', agent: 'Nobody' },
        ],
      },
    },
  } as const
  const refused = await start(module).catch((error: Error) => error.message)
  assert.deepEqual(String(refused).split('\n'), [
    'app.ts: there are 4 mistakes:',
    '  agent "S. Leeper": cron_schedule is missing: a scheduled agent needs it.',
    '  flow "broken": root.function: there is no function called triple.',
    '  flow "both": root.branches[1].agent: there is no agent called Nobody.',
    '  agent "Smith": tools: There is no tool called "nix".',
  ])
  assert.deepEqual(await projectsCalled('Mistaken'), [])
})

test('B8 an entry that stayed the same and lost what it names does not keep the server from starting; the log names it', async () => {
  const module = { project: 'Lost', flows: { twice: double } }
  await start(module)
  const said: string[] = []
  const without = { ...rules, flows: { ...rules.flows, functions: new Map() } }
  await followCode(pool, codeOf(module), without, recording(said))
  assert.deepEqual(said, ['app.ts: flow "twice": root.function: there is no function called double.'])
})

test('B8 an entry of the code that names an entry which has left the code is a mistake at each start', async () => {
  const ask = { type: 'sequential', steps: [double, { type: 'task', agent: 'Porter' }] }
  const daily = { flow_type: 'flow', flow: 'twice' }
  const whole = { project: 'Left', agents: { Porter: {}, Daily: daily }, flows: { ask, twice: double } }
  await start(whole)
  const path = await projectCalled('Left')
  const before = await entries(path)
  const noPorter =
    /^Error: app\.ts: flow "ask": root\.steps\[1\]\.agent: there is no agent called Porter\. It is no longer in the code\.$/
  const withoutPorter = { ...whole, agents: { Daily: daily } }
  await assert.rejects(start(withoutPorter), noPorter)
  const changed = { ...ask, id: 'changed' }
  await assert.rejects(start({ ...withoutPorter, flows: { ask: changed, twice: double } }), noPorter)
  await assert.rejects(
    start({ ...whole, flows: { ask } }),
    /^Error: app\.ts: agent "Daily": flow: there is no flow called "twice"\. It is no longer in the code\.$/,
  )
  assert.deepEqual(await entries(path), before)
  // The agent left earlier, with the flow that named it.
  await start({ ...whole, agents: { Daily: daily }, flows: { twice: double } })
  await assert.rejects(start(withoutPorter), noPorter)
  await start(whole)
})

test('B8 the log says of each entry whether it is new, changed, gone or back, and which fields changed', async () => {
  const module = (role: string) => ({
    project: 'Logged',
    file: '/srv/logged.ts',
    agents: { Clerk: { role } },
    flows: { twice: double },
  })
  const log = async (given: Module): Promise<string[]> => {
    const said: string[] = []
    await start({ ...given, log: recording(said) })
    return said.filter((sentence) => !sentence.includes('project'))
  }
  assert.deepEqual(await log(module('a clerk')), [
    'app.ts: the agent "Clerk" is new',
    'app.ts: the flow "twice" is new',
  ])
  assert.deepEqual(await log(module('a clerk')), [])
  const again = { ...module('a boss'), flows: { twice: { ...double, id: 'x' } } }
  assert.deepEqual(await log(again), [
    'app.ts: the agent "Clerk" has changed in the code: role',
    'app.ts: the flow "twice" has changed in the code: root',
  ])
  assert.deepEqual(await log({ project: 'Logged', file: '/srv/logged.ts' }), [
    'app.ts: the agent "Clerk" is no longer in the code and was disabled',
    'app.ts: the flow "twice" is no longer in the code and was disabled',
  ])
  const path = await projectCalled('Logged')
  const { agents, flows } = await entries(path)
  for (const one of [`agents/${agents.Clerk?.id}`, `flows/${flows.twice?.id}`]) {
    const refused = await call(`PATCH ${path}/${one}`, { body: { name: 'other' } })
    assert.equal(refused.status, 409)
    assert.match(refused.text, /was made by an app module, whose code no longer has it\. Delete it, or put it back/)
  }
  assert.deepEqual(await log(again), [
    'app.ts: the agent "Clerk" is in the code again',
    'app.ts: the flow "twice" is in the code again',
  ])
})

test('B8 a schedule or a reaction that the trigger_type of its agent does not use is said in the log', async () => {
  const said: string[] = []
  const reaction_config = { objectTypes: ['invoice'] }
  await start({
    project: 'Idle',
    agents: {
      Nightly: { cron_schedule: '0 4 * * *' },
      Watcher: { reaction_config },
      Fine: { cron_schedule: '0 4 * * *', trigger_type: 'schedule' },
    },
    log: recording(said),
  })
  assert.deepEqual(
    said.filter((sentence) => sentence.includes('effect')),
    [
      'app.ts: agent "Nightly": cron_schedule has no effect, because trigger_type is "manual". Add trigger_type: "schedule".',
      'app.ts: agent "Watcher": reaction_config has no effect, because trigger_type is "manual". Add trigger_type: "reaction".',
    ],
  )
})

test('B8 the module names another project: entries of the old one are disabled, those of other files are not', async () => {
  await start({ project: 'Old', agents: { Clerk: {} }, flows: { twice: double } })
  await start({ project: 'Neighbour', file: '/srv/other.ts', agents: { Clerk: {} } })
  await start({ project: 'New', agents: { Clerk: {} } })
  const clerks = async (...names: string[]): Promise<(boolean | undefined)[]> =>
    Promise.all(names.map(async (name) => (await entries(await projectCalled(name))).agents.Clerk?.enabled))
  assert.deepEqual(await clerks('Old', 'Neighbour', 'New'), [false, true, true])
  assert.equal((await entries(await projectCalled('Old'))).flows.twice?.enabled, false)
})

test('B8 a project that is halted is followed all the same', async () => {
  const module = (role: string) => ({ project: 'Halted', agents: { Clerk: { role } } })
  await start(module('first'))
  const path = await projectCalled('Halted')
  assert.equal((await call(`POST ${path}/halt`)).status, 200)
  await start(module('second'))
  assert.equal((await entries(path)).agents.Clerk?.role, 'second')
})

test('B8 processes with old and new code that start at once do not fight: the last one wins, whole', async () => {
  const module = (version: string) => ({
    project: 'Raced',
    agents: { Clerk: { role: version }, [version]: {} },
    flows: { twice: { ...double, args: version } },
  })
  await Promise.all(Array.from({ length: 8 }, (_, place) => start(module(place % 2 ? 'old' : 'new'))))
  const { agents, flows } = await entries(await projectCalled('Raced'))
  const winner = agents.Clerk?.role ?? ''
  assert.deepEqual(flows.twice?.root, { ...double, args: winner })
  assert.deepEqual([agents[winner]?.enabled, agents[winner === 'old' ? 'new' : 'old']?.enabled], [true, false])
})
