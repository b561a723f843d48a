// `npm run bench -- compare <folder>`: this checkout against an older one in another folder (a git worktree with its own
// node_modules), on one server. Every row of the benches `flows` and `runs` is measured in rounds in which the two take
// turns; the median of the rounds' ratios counts.
import { resolve } from 'node:path'
import { ROWS, type Row } from './compare/rows.ts'
import { startBenchServer } from './kit/database.ts'
import { percentile } from './kit/rounds.ts'
import { type Side, startSide } from './kit/side.ts'
import { atLeast, printVerdicts, type Verdict } from './kit/verdict.ts'

const ROUNDS = 7
const REQUIRED = 0.95

export async function benchCompare([folder, ...names]: readonly string[]): Promise<boolean> {
  if (folder === undefined) throw new Error('Name the folder of the older checkout: npm run bench -- compare ../older')
  await using server = await startBenchServer()
  const verdicts: Verdict[] = []
  let databases = 0
  const startAsker = async (row: Row, checkout: string): Promise<Side> => {
    const url = await server.createDatabase(`compared_${++databases}`, checkout)
    return startSide(row.program, row.args(url, checkout), {
      flags: row.flags ?? [],
      ...(row.isOurs ? {} : { folder: checkout }),
    })
  }
  for (const row of ROWS) {
    if (names.length > 0 && !names.some((name) => row.what.includes(name))) continue
    const verdict = await compareRow(row, (checkout) => startAsker(row, checkout), resolve(folder))
    console.log(`${verdict.what}: ${verdict.value}`)
    verdicts.push(verdict)
  }
  printVerdicts(verdicts, { ours: 'now', peer: 'before' })
  return verdicts.every((verdict) => verdict.isKept)
}

async function compareRow(row: Row, start: (checkout: string) => Promise<Side>, older: string): Promise<Verdict> {
  await using now = row.isFresh ? freshSides(() => start(process.cwd())) : await start(process.cwd())
  await using before = row.isFresh ? freshSides(() => start(older)) : await start(older)
  const measured: { now: number; before: number }[] = []
  for (let round = 0; round <= ROUNDS; round++) {
    // Each is first in turn, and its best answer counts.
    const order = round % 2 === 0 ? [now, before, before, now] : [before, now, now, before]
    const speeds = new Map([now, before].map((side) => [side, 0]))
    for (const side of order) {
      for (let asked = 0; asked < (row.repeats ?? 1); asked++) {
        const speed = row.speedOf(await side.ask<Record<string, number>>(row.question))
        speeds.set(side, Math.max(speeds.get(side) ?? 0, speed))
      }
    }
    // The first round warms up.
    if (round > 0) measured.push({ now: speeds.get(now) ?? 0, before: speeds.get(before) ?? 0 })
  }
  const ratio = percentile(
    measured.map((round) => round.now / round.before),
    0.5,
  )
  const shown = (which: 'now' | 'before'): string =>
    row.show(
      percentile(
        measured.map((round) => round[which]),
        0.5,
      ),
    )
  return { what: row.what, ours: shown('now'), peer: shown('before'), ...atLeast(ratio, REQUIRED) }
}

/** A side that is started anew, on a new database, for each question. */
function freshSides(start: () => Promise<Side>): Side {
  return {
    ask: async <Answer>(question: unknown): Promise<Answer> => {
      await using side = await start()
      return await side.ask<Answer>(question)
    },
    [Symbol.asyncDispose]: async () => {},
  }
}
