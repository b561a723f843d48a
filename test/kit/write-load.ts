// Clients that write without pause, even if the server fails, and remember all answers.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Db } from '../../src/db/pool.ts'
import { type Answer, type Cleanup, type Muster, readiness } from './process.ts'

/** A row that the server acknowledged: it must exist from then on. */
export interface Acknowledged {
  table: 'projects' | 'api_keys'
  id: string
  name: string
  /**
   * True for a row that is sent with an Idempotency-Key, again and again until it is acknowledged: it must exist once.
   */
  isKeyed: boolean
  attempts: number
}

export interface WriteLoad {
  readonly acknowledged: readonly Acknowledged[]
  /** Answers other than success, in the order of arrival. */
  readonly refusals: readonly Answer<unknown>[]
  /** The statuses of /readyz, each change once; null if there was no answer. */
  readonly readiness: readonly (number | null)[]
  /** Ends the clients. Throws if a client got no answer: after a cut connection, or for a request that hangs. */
  stop(): Promise<void>
}

const CLIENTS = 4
const PAUSE_AFTER_REFUSAL_MS = 50

/** The load ends with the test at the latest, also if the test failed while the server acknowledged nothing. */
export function startWriteLoad(t: Cleanup, muster: Muster, projectId: string): WriteLoad {
  const acknowledged: Acknowledged[] = []
  const refusals: Answer<unknown>[] = []
  const seen: (number | null)[] = []
  let isOver = false
  let isAbandoned = false

  async function client(number: number): Promise<void> {
    for (let turn = number; !isOver; turn++) {
      const isKeyed = turn % 2 === 0
      const table = turn % 4 < 2 ? 'projects' : 'api_keys'
      const route = table === 'projects' ? 'POST /api/projects' : `POST /api/projects/${projectId}/keys`
      const idempotencyKey = randomUUID()
      let name: string = randomUUID()
      for (let attempts = 1; ; attempts++) {
        const body = table === 'projects' ? { name } : { name, role: 'viewer' }
        const headers = isKeyed ? { 'idempotency-key': idempotencyKey } : {}
        const answer = await muster.call<{ id: string }>(route, { body, headers })
        if (answer.status === 201) {
          acknowledged.push({ table, id: answer.body.id, name, isKeyed, attempts })
          break
        }
        refusals.push(answer)
        // A refused row may have been stored, so without a key the next attempt would make another row.
        if (!isKeyed) name = randomUUID()
        if (isAbandoned || (isOver && !isKeyed)) return
        await sleep(PAUSE_AFTER_REFUSAL_MS)
      }
    }
  }

  async function watchReadiness(): Promise<void> {
    while (!isOver) {
      const status = await readiness(muster)
      if (status !== seen.at(-1)) seen.push(status)
      await sleep(5)
    }
  }

  const all = Promise.allSettled([...Array.from({ length: CLIENTS }, (_, number) => client(number)), watchReadiness()])
  t.after(async () => {
    isOver = true
    isAbandoned = true
    await all
  })
  return {
    acknowledged,
    refusals,
    readiness: seen,
    stop: async () => {
      isOver = true
      for (const outcome of await all) if (outcome.status === 'rejected') throw outcome.reason
    },
  }
}

/** During an outage the only answer besides success is 503, in the envelope and with Retry-After. */
export function requireCleanRefusals(refusals: readonly Answer<unknown>[]): void {
  for (const { status, headers, text, body } of refusals) {
    assert.equal(status, 503, text)
    assert.match(headers.get('retry-after') ?? '', /^[1-9]\d*$/, text)
    const { error } = body as { error: Record<string, unknown> } // asserted in the next lines
    assert.deepEqual(Object.keys(error).sort(), ['code', 'details', 'message'])
    assert.equal(error.code, 'UNAVAILABLE')
  }
}

/** Every acknowledged row is in the database, and a row that was sent with a key is there exactly once. */
export async function requireNothingLost(db: Db, acknowledged: readonly Acknowledged[]): Promise<void> {
  for (const table of ['projects', 'api_keys'] as const) {
    const mine = acknowledged.filter((entry) => entry.table === table)
    const { rows } = await db.query<{ id: string; name: string }>(`select id, name from ${table}`)
    const nameById = new Map(rows.map(({ id, name }) => [id, name]))
    const lost = mine.filter(({ id, name }) => nameById.get(id) !== name)
    assert.deepEqual(lost, [], `${lost.length} of ${mine.length} acknowledged ${table} are lost`)
    const times = Map.groupBy(rows, ({ name }) => name)
    const twice = mine.filter(({ name, isKeyed }) => isKeyed && times.get(name)?.length !== 1)
    assert.deepEqual(twice, [], `${twice.length} ${table} that were sent with a key are not there exactly once`)
  }
}
