// After half a minute of random failures, or ten minutes in `npm run test:long`, the promise holds.
import assert from 'node:assert/strict'
import { before, describe, test } from 'node:test'
import pg from 'pg'
import { atEnd } from '../kit/at-end.ts'
import { type ChaosReport, playChaos } from '../kit/chaos.ts'
import { howMany, seeds } from '../kit/how-many.ts'
import { eventsOf, type RunRecord } from '../kit/run-record.ts'
import { until } from '../kit/until.ts'

const MINUTES = howMany(0.5, 10)
const FEWEST_RUNS = 20 * MINUTES
const [seed = 0] = seeds(1)
const REPLAY = `MUSTER_TEST_SEED=${seed} npm run test:long -- test/system/chaos.system.test.ts`

describe(`${MINUTES} minutes of chaos, seed ${seed}`, () => {
  let report: ChaosReport
  let runs: ReadonlyMap<string, RunRecord>
  let stranger = { projectId: '', key: '' }

  before(async () => {
    report = await orReplay(playChaos({ after: atEnd }, { seed, forMs: MINUTES * 60_000, fewest: FEWEST_RUNS }))
    const { server } = report
    const made = await server.call<{ id: string }>('POST /api/projects', { body: { name: 'strangers' } })
    const key = await server.call<{ key: string }>(`POST /api/projects/${made.body.id}/keys`, {
      body: { name: 'stranger', role: 'admin' },
    })
    stranger = { projectId: made.body.id, key: key.body.key }
  })

  test('no run is lost, no event or effect is doubled unseen, and spent tokens are counted (I1 to I6)', async (t) => {
    runs = await orReplay(check())
    const statuses = Map.groupBy(runs.values(), ({ status, pause_reason }) => pause_reason ?? status)
    const ended = [...statuses].map(([status, those]) => `${those.length} ${status}`).join(', ')
    t.diagnostic(`seed ${seed}: ${report.accepted.length} runs accepted, of all runs ${ended}`)
    t.diagnostic([...report.acts].map(([name, count]) => `${count} × ${name}`).join(', '))
  })

  test('there were enough runs, and most of them completed', () => {
    const all = [...runs.values()]
    const completed = all.filter(({ status }) => status === 'completed')
    const crashed = all.filter((run) => eventsOf(run, 'run.recovered').length > 0)
    const lost = all.filter(({ error_code }) => error_code === 'CRASH_LOOP')
    const facts = `${completed.length} of ${all.length} completed, ${crashed.length} were recovered, ${lost.length} given up. ${REPLAY}`
    assert.ok(report.accepted.length >= FEWEST_RUNS, `only ${report.accepted.length} runs were accepted. ${REPLAY}`)
    assert.ok(completed.length >= all.length / 2, facts)
    assert.ok(crashed.length > 0, facts)
    assert.equal(lost.length, 0, facts)
  })

  test('no project sees data of another (I7)', () => orReplay(requireApart(stranger.key)))

  test('no rows of unfinished work are left (I8)', () => orReplay(requireClean()))

  for (const [name, breaks] of Object.entries(breakages())) {
    test(`the checks can fail: ${name}`, async (t) => {
      const done = report.accepted.flatMap((id) => runs.get(id) ?? []).find(isPlain)
      assert.ok(done, `no run completed with a letter. ${REPLAY}`)
      const { change, finds, spoil } = breaks
      if (spoil) await spoil(done)
      if (change) t.after(await alter(change, done.id))
      await assert.rejects(check(), finds)
    })
  }

  test('the checks of isolation and of leftover rows can fail, too', async () => {
    await assert.rejects(requireApart(report.server.adminToken()), /is shown to a stranger/)
    const hanging = new pg.Client({ connectionString: await report.world.databaseUrl() })
    await hanging.connect()
    await hanging.query('begin; select 1')
    await assert.rejects(requireClean(1_000), /transactions are open/)
    await hanging.end()
  })

  const check = async (accepted = report.accepted) => report.world.check(report.server, accepted)

  /** Each defect is made in the database or in the ledger, and undone if later checks would find it. */
  function breakages(): Record<string, Breakage> {
    return {
      'a run that is missing is found (I1)': {
        change: { set: 'project_id = :stranger', column: 'project_id' },
        finds: /is lost/,
      },
      'a gap in a journal is found (I3)': {
        change: { set: 'seq = seq + 1000', column: 'seq' },
        finds: /not numbered without gap/,
      },
      'an end that holds a reservation is found (I4)': {
        change: { set: 'reserved = 1', column: 'reserved' },
        finds: /holds a reservation/,
      },
      'a step that two owners wrote is found (I5)': {
        change: { set: `data = data || '{"step": 1}'`, column: 'data' },
        finds: /was written twice/,
      },
      'a token that was counted too often is found (I6)': {
        change: { set: 'input_tokens = input_tokens + 1', column: 'input_tokens' },
        finds: /its tokens/,
      },
      'a letter that was posted twice is found (I2)': {
        spoil: async (run) => {
          const posted = eventsOf(run, 'tool.started').find(({ data }) => data.name === 'post')
          const { label } = (posted?.data.args ?? {}) as { label: string } // as the plan has it
          const call = { tool: 'post', label, key: null, run: run.id, pid: process.pid }
          await fetch(report.world.ledger.url, { method: 'POST', body: JSON.stringify(call) })
        },
        finds: /the unsafe post was called 2 times/,
      },
    }
  }

  /** Makes the defect, and returns the function that undoes it. */
  async function alter({ set, column }: Change, runId: string): Promise<() => Promise<void>> {
    const { world } = report
    const [table, key, type] = COLUMNS[column]
    const before = await world.query<{ id: string; value: string | null }>(
      `select id, ${column}::text as value from ${table} where ${key} = $1`,
      [runId],
    )
    await world.query(`update ${table} set ${set.replace(':stranger', `'${stranger.projectId}'`)} where ${key} = $1`, [
      runId,
    ])
    return async () => {
      for (const { id, value } of before) {
        await world.query(`update ${table} set ${column} = $2::${type} where id = $1`, [id, value])
      }
    }
  }

  async function requireApart(token: string): Promise<void> {
    const { server, world, accepted } = report
    for (const id of accepted.slice(0, 50)) {
      for (const path of ['', '/steps', '/events']) {
        for (const projectId of [world.projectId, stranger.projectId]) {
          const answer = await server.call(`GET /api/projects/${projectId}/runs/${id}${path}`, { token })
          assert.equal(answer.status, 404, `run ${id} is shown to a stranger`)
        }
      }
    }
    for (const list of ['runs', 'tasks', 'agents']) {
      const answer = await server.call<{ items: unknown[] }>(`GET /api/projects/${stranger.projectId}/${list}`, {
        token,
      })
      assert.deepEqual(answer.body.items, [], `one of the ${list} is shown to a stranger`)
    }
  }

  async function requireClean(withinMs = 20_000): Promise<void> {
    const { world, servers } = report
    const leftovers: Record<string, string> = {
      'transactions are open': `select pid, query from pg_stat_activity where datname = current_database()
        and state like 'idle in transaction%' and pid <> pg_backend_pid()`,
      'runs are owned': 'select id from agent_runs where owner is not null',
      'texts are under way': 'select run_id from live_texts',
      'tokens are reserved': 'select agent_id from agent_tokens where reserved <> 0',
      'questions are open': `select id from tasks where status = 'pending' and kind = 'escalation' and run_id in
        (select id from agent_runs where status <> 'paused' or pause_reason <> 'outcome_unknown')`,
      'workers are known that are dead': `select id from workers offset ${servers.length}`,
    }
    for (const [what, sql] of Object.entries(leftovers)) {
      await until(async () => (await world.query(sql)).length === 0, `no ${what}`, withinMs).catch(async () => {
        assert.fail(`${what}: ${JSON.stringify(await world.query(sql))}`)
      })
    }
  }
})

/**
 * A completed run that posted a letter and has no parent or sub-runs, so that a defect is reported for this run only.
 */
function isPlain(run: RunRecord): boolean {
  const names = eventsOf(run, 'tool.started').map(({ data }) => data.name)
  return run.status === 'completed' && names.includes('post') && !names.includes('spawn_agent')
}

interface Change {
  set: string
  column: keyof typeof COLUMNS
}

interface Breakage {
  change?: Change
  spoil?: (run: RunRecord) => Promise<void>
  finds: RegExp
}

/** The table of each column, the condition that finds the rows of a run there, and the column's type. */
const COLUMNS = {
  project_id: ['agent_runs', 'id', 'uuid'],
  reserved: ['agent_runs', 'id', 'bigint'],
  input_tokens: ['agent_runs', 'id', 'bigint'],
  seq: ['run_events', 'run_id', 'bigint'],
  data: ['run_events', 'run_id', 'jsonb'],
} as const

async function orReplay<Value>(work: Promise<Value>): Promise<Value> {
  return work.catch((error: unknown) => {
    throw new Error(`Replay it with: ${REPLAY}\n${error instanceof Error ? error.message : error}`, { cause: error })
  })
}
