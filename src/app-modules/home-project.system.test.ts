// B8: the project of an app module is remembered, so that no rename moves the agents and flows of the module.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestApp } from '../../test/kit/app.ts'
import { until } from '../../test/kit/until.ts'
import { lockHierarchy } from '../agents/seniors.ts'
import { removeProjects } from '../bin/remove-projects.ts'
import { inTransaction } from '../db/transaction.ts'
import { builtInPatterns } from '../flows/machine/built-in-patterns.ts'
import { deleteProject, updateProject } from '../identity/projects.ts'
import { agentInput } from '../kernel/agent.ts'
import { newId } from '../kernel/id.ts'
import { type Log, silentLog } from '../kernel/log.ts'
import { systemActor } from '../kernel/principal.ts'
import { followCode } from './follow-code.ts'

const { pool, services, createProject } = await createTestApp()
const rules = { agents: services.agentRules, flows: { functions: new Map(), patterns: builtInPatterns } }

/** Starts a module with one agent in this project; answers the log lines. */
async function start(project: string, { agents = ['Clerk'], file = '/srv/app.ts' } = {}): Promise<string[]> {
  const said: string[] = []
  const note = (_: object, sentence?: string): void => void said.push(sentence ?? '')
  const log: Log = { ...silentLog, info: note, warn: note, error: note }
  const entries = agents.map((name) => agentInput.parse({ name }))
  await followCode(pool, { path: 'app.ts', file, project, agents: entries, flows: [] }, rules, log)
  return said
}
async function homesOf(agent: string): Promise<string[]> {
  const { rows } = await pool.query<{ project_id: string }>(
    'select a.project_id from agents a join projects p on p.id = a.project_id where a.name = $1 and a.enabled and p.deleted_at is null',
    [agent],
  )
  return rows.map((row) => row.project_id)
}
const rename = (id: string, name: string) => updateProject(pool, id, { name }, systemActor)

test('B8 a rename does not move the module, and a project that is given the name gets nothing', async () => {
  const said = await start('Nightly', { agents: ['Owl'] })
  assert.equal(said[0], 'app.ts: the project "Nightly" was made')
  const [home = ''] = await homesOf('Owl')
  await rename(home, 'Daily')
  const { id: foreign } = await createProject('Theirs')
  await rename(foreign, 'Nightly')
  const later = await start('Nightly', { agents: ['Owl', 'Bat'] })
  assert.equal(later[0], 'app.ts: its project "Nightly" is called "Daily" now')
  assert.deepEqual([await homesOf('Owl'), await homesOf('Bat')], [[home], [home]])
  // The code follows the rename, although an older project has that name, too.
  await pool.query(`update projects set name = 'Daily', created_at = created_at - interval '1 day' where id = $1`, [
    foreign,
  ])
  await start('Daily', { agents: ['Owl', 'Bat'] })
  assert.deepEqual(await homesOf('Owl'), [home])
})

test('B8 the first start takes the project of this name, the oldest of several, and says so', async () => {
  const { id: first } = await createProject('Shop')
  const one = await start('Shop', { agents: ['Seller'], file: '/srv/shop.ts' })
  assert.equal(
    one[0],
    `app.ts: the project "Shop" was there already; its agents and flows live in the project ${first} from now on`,
  )
  const { id: oldest } = await createProject('Mill')
  await createProject('Mill')
  const two = await start('Mill', { agents: ['Miller'], file: '/srv/mill.ts' })
  assert.equal(
    two[0],
    `app.ts: there are 2 projects called "Mill"; its agents and flows live in the project ${oldest} from now on`,
  )
  assert.deepEqual([await homesOf('Seller'), await homesOf('Miller')], [[first], [oldest]])
})

test('B8 a project that was removed is made anew, before and after its rows are gone; another of the name is left alone', async () => {
  const file = '/srv/gone.ts'
  await start('Gone', { agents: ['Ghost'], file })
  const { id: foreign } = await createProject('Gone')
  for (const isSweptAway of [false, true]) {
    const [home = ''] = await homesOf('Ghost')
    await deleteProject(pool, home, systemActor)
    if (isSweptAway) {
      await pool.query(`update projects set deleted_at = deleted_at - interval '1 minute' where id = $1`, [home])
      await removeProjects(pool)
      assert.equal((await pool.query('select from projects where id = $1', [home])).rowCount, 0)
    }
    const said = await start('Gone', { agents: ['Ghost'], file })
    assert.equal(said[0], 'app.ts: the project "Gone" was removed, and is made anew')
    const anew = await homesOf('Ghost')
    assert.equal(anew.length, 1)
    assert.ok(anew[0] !== home && anew[0] !== foreign)
  }
})

test('B8 a name that a person takes while the module is written is left out, too', async () => {
  const { id } = await createProject('Raced')
  const started = await inTransaction(pool, async (tx) => {
    await tx.query(`insert into agents (id, project_id, name, capabilities) values ($1, $2, 'Racer', '{}')`, [
      newId(),
      id,
    ])
    const starting = start('Raced', { agents: ['Racer', 'Walker'], file: '/srv/raced.ts' })
    const waits = `select from pg_stat_activity where wait_event_type = 'Lock' and query like '%insert into agents%'`
    await until(async () => (await pool.query(waits)).rowCount === 1, 'the module waits for the name')
    return { starting }
  })
  const said = await started.starting
  assert.equal(said.filter((sentence) => sentence.includes('agent "Racer" is left out')).length, 1, said.join('\n'))
  assert.deepEqual(await homesOf('Walker'), [id])
})

test('B8 agents of another project are disabled when its hierarchy is free', async () => {
  await start('Before', { agents: ['Heron'], file: '/srv/moved.ts' })
  const [before = ''] = await homesOf('Heron')
  const moving = await inTransaction(pool, async (tx) => {
    await lockHierarchy(tx, before)
    const moved = start('After', { agents: ['Heron'], file: '/srv/moved.ts' })
    const isWaiting = async (): Promise<boolean> => {
      const { rowCount } = await pool.query(
        `select from pg_stat_activity where datname = current_database() and wait_event = 'advisory'`,
      )
      return rowCount === 1
    }
    await Promise.race([moved, until(isWaiting, 'the start waits')])
    // A deletion that holds the hierarchy locks several agents, in any order.
    await tx.query('select from agents where project_id = $1 for update nowait', [before])
    assert.deepEqual(await homesOf('Heron'), [before])
    return { moved }
  })
  await moving.moved
  const [after] = await homesOf('Heron')
  assert.notEqual(after, before)
})
