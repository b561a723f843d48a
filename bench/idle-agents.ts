// The cost of idle agents: a server with ten thousand idle agents against a server with ten. No client sends a request.
// Each is measured for five minutes; afterwards no transaction may be open.
import { setTimeout as sleep } from 'node:timers/promises'
import { measureCpu } from './kit/cpu.ts'
import { startBenchServer, withClient } from './kit/database.ts'
import { measureMemory } from './kit/memory.ts'
import { startMuster } from './kit/muster.ts'
import { printVerdicts, type Verdict } from './kit/verdict.ts'

const FEW = 10
const MANY = 10_000
const SECONDS = Number(process.env.BENCH_IDLE_SECONDS ?? 300)
/** Within these seconds every new agent is checked once, statements are prepared and functions compiled. */
const SETTLING_MS = 30_000
const MOST_CPU = 0.005
const MOST_MEMORY = 50 * 1024 * 1024

interface Idle {
  cpu: number
  memory: number
  /** The open transactions, and the connections that ran a statement, at the end of the time. */
  leftOpen: number
}

export async function benchIdleAgents(): Promise<boolean> {
  await using server = await startBenchServer()
  const few = await idle(await server.createDatabase('few'), FEW)
  const many = await idle(await server.createDatabase('many'), MANY)
  const percent = (share: number): string => `${(share * 100).toFixed(2)} %`
  const megabytes = (bytes: number): string => `${(bytes / 1024 / 1024).toFixed(1)} MB`
  const verdicts: Verdict[] = [
    {
      what: 'share of a core, server and database',
      ours: percent(many.cpu),
      peer: percent(few.cpu),
      value: `${percent(many.cpu - few.cpu)} more`,
      required: `<= ${percent(MOST_CPU)}`,
      isKept: many.cpu - few.cpu <= MOST_CPU,
    },
    {
      what: 'memory of their own, server and database',
      ours: megabytes(many.memory),
      peer: megabytes(few.memory),
      value: `${megabytes(many.memory - few.memory)} more`,
      required: `<= ${megabytes(MOST_MEMORY)}`,
      isKept: many.memory - few.memory <= MOST_MEMORY,
    },
    {
      what: 'transactions and statements left open',
      ours: `${many.leftOpen}`,
      peer: `${few.leftOpen}`,
      value: `${many.leftOpen}`,
      required: '0',
      isKept: many.leftOpen === 0 && few.leftOpen === 0,
    },
  ]
  printVerdicts(verdicts, { ours: `${MANY} agents`, peer: `${FEW} agents` })
  return verdicts.every((verdict) => verdict.isKept)
}

async function idle(databaseUrl: string, agents: number): Promise<Idle> {
  {
    // The first start makes the tables.
    await using _ = await startMuster(databaseUrl)
  }
  await withClient(databaseUrl, (client) => client.query(MAKE_AGENTS, [agents]))
  await using server = await startMuster(databaseUrl)
  await sleep(SETTLING_MS)
  const { server: own, database } = await measureCpu(server, SECONDS)
  return { cpu: own + database, memory: await measureMemory(server), leftOpen: await countOpen(databaseUrl) }
}

/** Nine of ten agents have a senior; none has a task. */
const MAKE_AGENTS = `
  with project as (
    insert into projects (id, name) values (gen_random_uuid(), 'A project') returning id
  ), seniors as (
    insert into agents (id, project_id, name, capabilities)
    select gen_random_uuid(), p.id, 'senior ' || n, '{}' from project p, generate_series(1, $1::int / 10) n returning id, project_id
  ), juniors as (
    insert into agents (id, project_id, name, capabilities, senior_id)
    select gen_random_uuid(), s.project_id, s.id || ' ' || n, '{}', s.id from seniors s, generate_series(1, 9) n
    returning id, project_id
  )
  insert into task_queues (agent_id, project_id) select * from seniors union all select * from juniors`

async function countOpen(databaseUrl: string): Promise<number> {
  return withClient(databaseUrl, async (client) => {
    const { rows } = await client.query<{ count: number }>(
      `select count(*)::int as count from pg_stat_activity
       where datname = current_database() and backend_type = 'client backend' and pid <> pg_backend_pid() and state <> 'idle'`,
    )
    return rows[0]?.count ?? Number.NaN
  })
}
