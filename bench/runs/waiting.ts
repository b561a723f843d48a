// (e) The memory of a run while it waits for its model: heap and external memory of the process, after a collection.
import { startSide } from '../kit/side.ts'
import type { Verdict } from '../kit/verdict.ts'

const RUNS = 5_000
const MOST_BYTES = 100_000

export async function benchWaiting(url: string): Promise<Verdict> {
  await using side = startSide('bench/runs/waiting-side.ts', [url], { flags: ['--expose-gc'] })
  const { bytesPerRun } = await side.ask<{ bytesPerRun: number }>({ runs: RUNS })
  const kilobytes = (bytes: number): string => `${(bytes / 1_000).toFixed(1)} kB`
  return {
    what: `memory of each of ${RUNS} waiting runs`,
    ours: kilobytes(bytesPerRun),
    peer: '',
    value: '',
    required: `< ${kilobytes(MOST_BYTES)}`,
    isKept: bytesPerRun < MOST_BYTES,
  }
}
