// The measurements of two checkouts. A side answers in seconds, milliseconds or bytes; a speed grows as it gets better.
import { APPENDED } from '../runs/ceiling.ts'

export interface Row {
  what: string
  /** A program of each checkout, or of this checkout only if `isOurs`. */
  program: string
  isOurs?: boolean
  /** True if a side can answer only once. */
  isFresh?: boolean
  args: (url: string, folder: string) => readonly string[]
  flags?: readonly string[]
  question: object
  /** The number of times that a side is asked in its turn, for work of some milliseconds; otherwise once. */
  repeats?: number
  speedOf: (answer: Record<string, number>) => number
  show: (speed: number) => string
}

const IN_FLIGHT = 50
const LEAVES = 1_000
const ITEMS = 100_000

const perSecond = (speed: number): string => `${speed.toFixed(0)}/s`
const inMs = (speed: number): string => `${(1 / speed).toFixed(2)} ms`

const flow = (what: string, count: number, question: object): Row => ({
  what,
  program: 'bench/flows/muster-side.ts',
  args: (url) => [url, String(IN_FLIGHT)],
  question,
  speedOf: ({ seconds = Number.NaN }) => count / seconds,
  show: perSecond,
})

const runs = (what: string, count: number, question: object): Row => ({
  ...flow(what, count, { count, inFlight: IN_FLIGHT, ...question }),
  program: 'bench/runs/muster-side.ts',
  args: (url) => [url],
})

const firstStep = (share: 'p50' | 'p99'): Row => ({
  what: `runs: first step after a start elsewhere, ${share}`,
  program: 'bench/compare/first-step-side.ts',
  isOurs: true,
  args: (url, folder) => [url, folder],
  question: {},
  speedOf: (answer) => 1 / (answer[share] ?? Number.NaN),
  show: inMs,
})

export const ROWS: readonly Row[] = [
  flow('flows: five leaves in sequence', LEAVES, { do: 'sequences', count: LEAVES, inFlight: IN_FLIGHT }),
  {
    ...flow('flows: functions fanned out', LEAVES, { do: 'fan_out', branches: LEAVES, leaf: 'function' }),
    repeats: 10,
  },
  flow('flows: agents fanned out', LEAVES, { do: 'fan_out', branches: LEAVES, leaf: 'agent' }),
  {
    ...flow('flows: map-reduce of items', ITEMS, { do: 'map_reduce', items: ITEMS, workers: IN_FLIGHT }),
    repeats: 5,
  },
  runs('runs: 10-step tool loop', 200, { do: 'runs', script: { steps: 10, parts: 20 } }),
  runs('runs: journal appends', 6_000, { do: 'append', events: APPENDED }),
  runs('runs: whole 5-step runs', 600, { do: 'runs', script: { steps: 5, parts: 1 } }),
  firstStep('p50'),
  firstStep('p99'),
  {
    what: 'runs: memory of a waiting run',
    program: 'bench/runs/waiting-side.ts',
    isFresh: true,
    args: (url) => [url],
    flags: ['--expose-gc'],
    question: { runs: LEAVES },
    speedOf: ({ bytesPerRun = Number.NaN }) => 1 / bytesPerRun,
    show: (speed) => `${(1 / speed / 1_000).toFixed(1)} kB`,
  },
]
