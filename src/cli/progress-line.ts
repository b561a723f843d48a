// The live line of a flow run: a bar, the count of leaves, and as many further facts as fit the window.
import type { FlowProgress } from '../kernel/flow-run.ts'
import { durationText } from './durations.ts'
import { type StyledText, styled } from './screen.ts'

const LONGEST_BAR = 30
const SHORTEST_BAR = 6

interface ProgressFacts {
  progress: FlowProgress
  /** The expected end, as an instant. */
  eta: string | null
  /** The time since the start. */
  elapsedMs: number
  isCancelling: boolean
}

/** Takes at least one column less than the window has: a full line would wrap on some terminals. */
export function progressLine(facts: ProgressFacts, columns: number, nowMs: number): StyledText[] {
  const { completed, failed, skipped, total } = facts.progress
  const done = completed + failed + skipped
  const room = columns - 1
  const [count = '', ...others] = factTexts(facts, nowMs)
  let text = ` ${count}`
  for (const other of others) if (text.length + 3 + other.length + SHORTEST_BAR <= room) text += ` · ${other}`
  const length = Math.max(0, Math.min(LONGEST_BAR, room - text.length))
  const filled = total === 0 ? 0 : Math.round((length * done) / total)
  const bad = Math.min(filled, total === 0 ? 0 : Math.ceil((length * failed) / total))
  return [
    styled('green', '█'.repeat(filled - bad)),
    styled('red', '█'.repeat(bad)),
    styled('dim', '░'.repeat(length - filled)),
    text.slice(0, room),
  ]
}

/** The most important one first. */
function factTexts({ progress, eta, elapsedMs, isCancelling }: ProgressFacts, nowMs: number): string[] {
  const { completed, failed, skipped, running, total, items } = progress
  const leftMs = eta === null ? null : Date.parse(eta) - nowMs
  return [
    `${completed + failed + skipped}/${total}`,
    ...(isCancelling ? ['cancelling'] : []),
    ...(failed > 0 ? [`${failed} failed`] : []),
    ...(leftMs === null ? [] : [leftMs > 0 ? `${secondsText(leftMs)} left` : 'any moment']),
    ...(running > 0 ? [`${running} running`] : []),
    ...(items ? [`${items.completed}/${items.total} items`] : []),
    `${secondsText(elapsedMs)} so far`,
  ]
}

/** Without decimals, which would only flicker. */
const secondsText = (ms: number): string =>
  ms < 10_000 ? `${Math.max(1, Math.round(ms / 1_000))} s` : durationText(ms)
