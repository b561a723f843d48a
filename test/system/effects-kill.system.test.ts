// Random scripts with real kills: each sequence is one task and one flow on two servers over one database, of which one
// or the other is killed with SIGKILL before, during and after effects. test/kit/check-effects.ts states the promise.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { checkEffects } from '../kit/check-effects.ts'
import { createTestPool } from '../kit/database.ts'
import { startEffectKills } from '../kit/effect-kills.ts'
import { type EffectScript, scriptsOf } from '../kit/effect-script.ts'
import { createEffectWork } from '../kit/effect-work.ts'
import { howMany, seeds } from '../kit/how-many.ts'

const SEQUENCES = 20
/** Work that was hit by a crash is tried one piece at a time, so that many pieces at once would wait for each other. */
const AT_ONCE = 5
let named = 0
const most = { modelFaults: 2, callFaults: 1 }

/** Failures that real servers wait out for long are left to the tests in one process. */
const isQuick = ({ modelFaults }: EffectScript): boolean => modelFaults.every(({ what }) => what !== 'down')
const deaths = fc.record({
  at: fc.integer({ min: 1, max: 2 }),
  what: fc.constantFrom('dies before', 'dies after'),
})
/** In each sequence a server dies during an effect of the task. */
const sequences = fc.tuple(
  fc
    .tuple(scriptsOf(['task'], most).filter(isQuick), deaths)
    .map(([script, death]): EffectScript => ({ ...script, callFaults: [death, ...script.callFaults] })),
  scriptsOf(['leaf', 'flow', 'flow'], most).filter(isQuick),
)

for (const seed of seeds(howMany(1, 30))) {
  test(`${SEQUENCES} sequences with real kills have each effect once, or ask (MUSTER_TEST_SEED=${seed})`, async (t) => {
    const servers = await startEffectKills(t)
    const db = createTestPool(servers.databaseUrl, 2)
    t.after(() => db.end())
    const play = async (batch: readonly EffectScript[]): Promise<string[]> => {
      // Beginnings are not repeated, so nobody dies before all works have begun.
      await servers.hold()
      const works = await Promise.all(
        batch.map((script) => {
          const name = `work ${++named}`
          return createEffectWork(servers, script, name, (work) => servers.works.set(name, work))
        }),
      )
      await Promise.all(works.map((work) => work.begin()))
      servers.mayKill()
      const found = await Promise.all(
        works.map(async (work) => {
          const record = await work.seeThrough()
          const complaints = await checkEffects(db, work.projectId, record)
          return complaints.map((complaint) => `${complaint}; ${JSON.stringify(record)}`)
        }),
      )
      return found.flat()
    }
    const scripts = fc.sample(sequences, { seed, numRuns: SEQUENCES })
    const complaints: string[] = []
    for (let from = 0; from < SEQUENCES; from += AT_ONCE) {
      complaints.push(...(await play(scripts.slice(from, from + AT_ONCE).flat())))
    }
    t.diagnostic(`${servers.kills()} kills`)
    assert.deepEqual(complaints, [])
    assert.ok(servers.kills() > 0, 'no server was killed')
  })
}
