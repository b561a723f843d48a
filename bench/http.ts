// The throughput of our API as a share of the throughput of Fastify and pg: an authenticated POST that writes one row
// and its audit row, against a bare handler that writes the same two rows. The fastest bare handler counts.
import { randomUUID } from 'node:crypto'
import { startChild } from './kit/child.ts'
import { startBenchServer, withClient } from './kit/database.ts'
import { applyLoad, type Request, type Round } from './kit/load.ts'
import { post, type Started, startMuster } from './kit/muster.ts'

interface Side {
  name: string
  databaseUrl: string
  request: Request
  rounds: Round[]
  /** All successful answers, warm-up included. */
  answers: number
}

const REQUIRED_RATIO = 0.6
const CONNECTIONS = 50
const WARM_UP_SECONDS = 5
const ROUND_SECONDS = 3
const ROUNDS = 9
/** The pool size of `muster start` (bin/start.ts). */
const POOL_SIZE = 20

export async function benchHttp(): Promise<boolean> {
  await using server = await startBenchServer()
  await using ours = await startMuster(await server.createDatabase('ours'))
  await using peer = await startPeer(await server.createDatabase('bare'))
  const body = { name: 'a key of the bench', role: 'viewer' }
  const bare = (path: string): Request => ({ url: `${peer.address}/${path}`, headers: {}, body })
  const muster = newSide('muster', ours.databaseUrl, { ...(await openProject(ours.address)), body })
  const statement = newSide('bare, one statement', peer.databaseUrl, bare('one-statement'))
  const transaction = newSide('bare, transaction', peer.databaseUrl, bare('transaction'))
  const sides = [muster, statement, transaction]

  for (const side of sides) await measure(side, WARM_UP_SECONDS)
  for (let round = 0; round < ROUNDS; round++) {
    for (const side of sides) side.rounds.push(await measure(side, ROUND_SECONDS))
  }
  await requireRows(sides)

  print(sides, muster)
  const ratio = median(muster, 'perSecond') / median(statement, 'perSecond')
  const isKept = ratio >= REQUIRED_RATIO
  console.log(
    `\nJudged: muster to "${statement.name}" is ${ratio.toFixed(2)}; at least ${REQUIRED_RATIO} is required: ${isKept ? 'kept' : 'NOT kept'}.`,
  )
  return isKept
}

async function startPeer(databaseUrl: string): Promise<Started> {
  const projectId = randomUUID()
  await withClient(databaseUrl, (client) =>
    client.query('insert into projects (id, name) values ($1, $2)', [projectId, 'A project']),
  )
  return { ...(await startChild(['bench/http-peer.ts', databaseUrl, String(POOL_SIZE), projectId], {})), databaseUrl }
}

/** Makes a project and the key of an admin. Returns the parts of a request that makes further keys. */
async function openProject(address: string): Promise<Omit<Request, 'body'>> {
  const project = await post(`${address}/api/projects`, { name: 'A project' })
  const url = `${address}/api/projects/${project.id}/keys`
  const admin = await post(url, { name: 'the admin key', role: 'admin' })
  return { url, headers: { authorization: `Bearer ${admin.key}` } }
}

const newSide = (name: string, databaseUrl: string, request: Request): Side => ({
  name,
  databaseUrl,
  request,
  rounds: [],
  answers: 0,
})

async function measure(side: Side, seconds: number): Promise<Round> {
  const round = await applyLoad(side.request, { connections: CONNECTIONS, seconds })
  side.answers += round.answers
  return round
}

/** Checks that there are two rows for every answer; requests cut off at the end of a round may have left more rows. */
async function requireRows(sides: readonly Side[]): Promise<void> {
  for (const databaseUrl of new Set(sides.map((side) => side.databaseUrl))) {
    const answers = sides.reduce((sum, side) => sum + (side.databaseUrl === databaseUrl ? side.answers : 0), 0)
    const { rows } = await withClient(databaseUrl, (client) =>
      client.query(`select (select count(*) from api_keys)::int as keys,
        (select count(*) from audit_log where action = 'key.create')::int as notes`),
    )
    const { keys, notes } = rows[0]
    if (keys < answers || keys !== notes) throw new Error(`${answers} answers, ${keys} keys, ${notes} audit rows`)
  }
}

function print(sides: readonly Side[], ours: Side): void {
  const title = `POST that writes a key and its audit row; ${CONNECTIONS} connections, median of ${ROUNDS} rounds of ${ROUND_SECONDS} s`
  console.log(`${title}\n`)
  console.log(row('', 'req/s', 'p50 ms', 'p99 ms', 'muster to it', 'required'))
  for (const side of sides) {
    const ratio = side === ours ? '' : (median(ours, 'perSecond') / median(side, 'perSecond')).toFixed(2)
    const required = side === sides[1] ? `>= ${REQUIRED_RATIO}` : ''
    const [perSecond, p50, p99] = [median(side, 'perSecond'), median(side, 'p50Ms'), median(side, 'p99Ms')]
    console.log(row(side.name, perSecond.toFixed(0), p50.toFixed(0), p99.toFixed(0), ratio, required))
  }
}

const row = (name: string, ...cells: string[]): string =>
  name.padEnd(22) + cells.map((cell) => cell.padStart(13)).join('')

function median(side: Side, what: 'perSecond' | 'p50Ms' | 'p99Ms'): number {
  const values = side.rounds.map((round) => round[what]).sort((a, b) => a - b)
  return values[Math.floor(values.length / 2)] ?? Number.NaN
}
