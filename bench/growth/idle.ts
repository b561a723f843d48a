// (c) The share of a core that the server and its whole PostgreSQL take while no client sends a request.
import { setTimeout as sleep } from 'node:timers/promises'
import { measureCpu } from '../kit/cpu.ts'
import { withClient } from '../kit/database.ts'
import { type Started, startMuster } from '../kit/muster.ts'
import type { Verdict } from '../kit/verdict.ts'

const SECONDS = 20
const ROUNDS = 3
const MOST_SHARE = 0.02
/** Statements are prepared, plans chosen and functions compiled within these seconds. */
const SETTLING_MS = 8_000
const SEALED_WITHIN_MS = 120_000

/** One server runs at a time, because both use the same PostgreSQL. The median round counts. */
export async function benchIdle(databases: { grown: string; empty: string }): Promise<Verdict[]> {
  const rounds: Record<'grown' | 'empty', Awaited<ReturnType<typeof measureCpu>>[]> = { grown: [], empty: [] }
  for (let round = 0; round < ROUNDS; round++) {
    for (const side of ['empty', 'grown'] as const) {
      await using server = await startMuster(databases[side])
      await settle(server)
      rounds[side].push(await measureCpu(server, SECONDS))
    }
  }
  const percent = (share: number): string => `${(share * 100).toFixed(2)} %`
  return (['grown', 'empty'] as const).map((side) => {
    const sorted = rounds[side].toSorted((a, b) => a.server + a.database - b.server - b.database)
    const { server, database } = sorted[Math.floor(ROUNDS / 2)] ?? { server: Number.NaN, database: Number.NaN }
    return {
      what: `idle CPU of server and database, ${side}`,
      ours: percent(server),
      peer: percent(database),
      value: percent(server + database),
      required: `< ${percent(MOST_SHARE)}`,
      isKept: server + database < MOST_SHARE,
    }
  })
}

/** Waits until a server that starts over old rows has sealed their audit entries. */
async function settle({ databaseUrl }: Started): Promise<void> {
  const deadline = performance.now() + SEALED_WITHIN_MS
  await withClient(databaseUrl, async (client) => {
    for (;;) {
      const { rows } = await client.query<{ is_sealed: boolean }>(
        `select coalesce((select max(seq) from audit_log), 0) <= coalesce((select max(seq_to) from audit_blocks), 0)
           as is_sealed`,
      )
      if (rows[0]?.is_sealed) return
      if (performance.now() > deadline) throw new Error('the audit of the rows was not sealed')
      await sleep(500)
    }
  })
  await sleep(SETTLING_MS)
}
