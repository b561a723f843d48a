// Our write speed as a share of PostgreSQL's own.
// (b) Appends: fifty runs append two events of some 300 bytes each, again and again. The ceiling inserts the same rows
//     in batches of the same sizes. Events per second are compared.
// (c) Whole runs of five steps, four of which call a tool, fifty at once, each started, claimed, worked on
//     under its fence and ended: fifteen events. The ceiling inserts the same fifteen events per run with
//     fifty runs in lock step: the first append of each in one batch, then the second of each. Events per second are
//     compared, which is the same as runs per second.
import { startSide } from '../kit/side.ts'
import { atLeast, type Verdict } from '../kit/verdict.ts'
import type { BareAnswer, BareQuestion } from './bare-side.ts'
import type { MusterAnswer, MusterQuestion } from './muster-side.ts'

const IN_FLIGHT = 50
/** Rounds are short and many, so that at least one round of each side is likely to be undisturbed. */
const ROUNDS = 7
const APPENDS_REQUIRED = 0.6
const RUNS_REQUIRED = 0.4

const TEXT = 'What a step said and what a tool was called with, at about the length that such events have. '.repeat(3)
export const APPENDED = [
  { kind: 'step.completed', data: { step: 1, text: TEXT } },
  { kind: 'tool.completed', data: { step: 1, result: TEXT } },
]

export async function benchAppends(database: string): Promise<Verdict> {
  const question: MusterQuestion = { do: 'append', count: 6_000, inFlight: IN_FLIGHT, events: APPENDED }
  const { ours, bare } = await compare(database, question, true)
  return { what: 'journal appends to bare inserts', ...shown(ours, bare), ...atLeast(ours / bare, APPENDS_REQUIRED) }
}

export async function benchWholeRuns(database: string): Promise<Verdict> {
  const question: MusterQuestion = { do: 'runs', count: 600, inFlight: IN_FLIGHT, script: { steps: 5, parts: 1 } }
  const { ours, bare } = await compare(database, question, false)
  return { what: 'whole 5-step runs to bare inserts', ...shown(ours, bare), ...atLeast(ours / bare, RUNS_REQUIRED) }
}

/** The best round of each side, in events per second. */
async function compare(
  database: string,
  question: MusterQuestion,
  keepsBatches: boolean,
): Promise<{ ours: number; bare: number }> {
  await using muster = startSide('bench/runs/muster-side.ts', [database], { isProfiled: true })
  await using bare = startSide('bench/runs/bare-side.ts', [database])
  const best = { ours: 0, bare: 0 }
  for (let round = 0; round <= ROUNDS; round++) {
    const made = await muster.ask<MusterAnswer>(question)
    const batches = keepsBatches ? { batches: made.batches } : {}
    const again: BareQuestion = { runIds: made.runIds, inFlight: IN_FLIGHT, ...batches }
    const ceiling = await bare.ask<BareAnswer>(again)
    if (ceiling.events !== made.events) throw new Error(`${made.events} events, ${ceiling.events} of them inserted`)
    // The first round warms up.
    if (round === 0) continue
    best.ours = Math.max(best.ours, made.events / made.seconds)
    best.bare = Math.max(best.bare, ceiling.events / ceiling.seconds)
  }
  return best
}

const shown = (ours: number, bare: number): { ours: string; peer: string } => ({
  ours: `${ours.toFixed(0)} events/s`,
  peer: `${bare.toFixed(0)} events/s`,
})
