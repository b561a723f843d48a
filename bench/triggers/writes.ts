// (b) The cost of a change while a thousand agents react to other types, against ten agents.
// (c) Creations and updates of objects by the write path (row, version, audit entry, match), against the bare insert
// and
//     update of the same rows in a table with the same indexes.
// Rounds take turns, and the best of each counts.
import { createPool } from '../../src/db/pool.ts'
import { newId } from '../../src/kernel/id.ts'
import { silentLog } from '../../src/kernel/log.ts'
import { startSide } from '../kit/side.ts'
import { atLeast, atMost, type Verdict } from '../kit/verdict.ts'
import type { ChangerQuestion } from './changer.ts'
import { createReactors } from './reactors.ts'

const COUNT = 1_000
const IN_FLIGHT = 20
const ROUNDS = 7
const FLAT_REQUIRED = 1.3
const WRITES_REQUIRED = 0.4

export async function benchWrites(url: string): Promise<Verdict[]> {
  const pool = createPool({ url, max: 2, log: silentLog })
  await pool.query('create table public.bare_objects (like objects including all)')
  const project = async (agents: number): Promise<string> => {
    const id = newId()
    await pool.query('insert into projects (id, name) values ($1, $2)', [id, `${agents} agents`])
    await createReactors(pool, id, agents, (index) => `Not written ${index}`)
    return id
  }
  const few = await project(10)
  const many = await project(1_000)
  await pool.query('analyze')
  await using changer = startSide('bench/triggers/changer.ts', [url], { isProfiled: true })
  const questions: Record<'few' | 'many' | 'bare', ChangerQuestion> = {
    few: { do: 'write', projectId: few, count: COUNT, inFlight: IN_FLIGHT },
    many: { do: 'write', projectId: many, count: COUNT, inFlight: IN_FLIGHT },
    bare: { do: 'bare', projectId: few, count: COUNT, inFlight: IN_FLIGHT },
  }
  const best = { few: Number.POSITIVE_INFINITY, many: Number.POSITIVE_INFINITY, bare: Number.POSITIVE_INFINITY }
  for (let round = 0; round <= ROUNDS; round++) {
    for (const side of ['few', 'many', 'bare'] as const) {
      const seconds = await changer.ask<number>(questions[side])
      // The first round warms up.
      if (round > 0) best[side] = Math.min(best[side], seconds)
    }
  }
  await pool.end()
  const perSecond = (seconds: number): number => (2 * COUNT) / seconds
  const shown = (seconds: number): string => `${perSecond(seconds).toFixed(0)} writes/s`
  return [
    {
      what: 'a change among 1,000 agents that do not match, to 10',
      ours: shown(best.many),
      peer: shown(best.few),
      ...atMost(best.many / best.few, FLAT_REQUIRED),
    },
    {
      what: 'object writes to bare inserts and updates',
      ours: shown(best.few),
      peer: shown(best.bare),
      ...atLeast(best.bare / best.few, WRITES_REQUIRED),
    },
  ]
}
