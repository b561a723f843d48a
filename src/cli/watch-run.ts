// Follows a run to its end, or to a pause; prints how it ended, and gives the exit code that says so.
import { z } from 'zod'
import { hasEnded } from '../kernel/run.ts'
import { finalKinds } from '../kernel/run-event.ts'
import { type RunAnswer, readList, runAnswer } from './answers.ts'
import type { CommandContext } from './command.ts'
import { durationText, tokensText } from './durations.ts'
import { type ExitCode, exitCodes } from './exit-codes.ts'
import { explainPause, explanationLines, isAboutToGoOn, waitText } from './explain-pause.ts'
import { type FollowEventsOptions, followEvents } from './follow-events.ts'
import { styled } from './screen.ts'
import { shortId } from './short-id.ts'
import { createTranscript, type FollowedEvent } from './transcript.ts'
import { jsonText, visibleLine, visibleText } from './visible-text.ts'
import type { Workplace } from './workplace.ts'

export interface FollowingOptions {
  /** Prints each event as a line of JSON, instead of the run at the end. */
  asEvents?: boolean
  /** Keeps following while the run waits for people, tokens or the off switch. */
  staysThroughWaits?: boolean
}

/** Follows the run on the screen and returns the exit code. Ctrl-C ends the following, and the run continues. */
export async function watchRun(
  context: CommandContext,
  workplace: Workplace,
  run: RunAnswer,
  { asEvents = false, staysThroughWaits = false }: FollowingOptions = {},
): Promise<ExitCode> {
  const { out, notes, isJson } = context
  const agents = new Map((await workplace.agents()).map(({ id, name }) => [id, name]))
  const agentName = (id: string): string => agents.get(id) ?? shortId(id)
  const transcript = createTranscript({ out, notes, runId: run.id, agentName })
  const onEvent = (event: FollowedEvent & { id: string | null }): void => {
    if (!isJson) transcript.show(event)
    else if (asEvents) out.print(jsonText(event))
  }
  let lastWait: string | null = null
  const onWait = (waiting: RunAnswer): void => {
    const text = waitText(waiting)
    if (!isJson && text !== null && text !== lastWait) {
      notes.print(styled('yellow', visibleLine(text)))
      const isOfProvider = waiting.waiting_for?.startsWith('provider ') ?? false
      if (isOfProvider)
        notes.print('To try at once: ', styled('cyan', workplace.command(`muster try-now ${shortId(run.id)}`)))
    }
    lastWait = text
  }
  if (!isJson) notes.live([styled('dim', `${run.status} …`)])
  try {
    onWait(run)
    const settled = await follow(context, workplace, run, { onEvent, onWait, staysThroughWaits })
    transcript.finish()
    return await conclude(context, workplace, settled, { lastText: transcript.lastText(), asEvents })
  } catch (error) {
    if (!context.signal.aborted) throw error
    return tellGoingOn(context, workplace, { what: 'The run', id: run.id })
  }
}

export function tellGoingOn(
  { notes, isJson }: CommandContext,
  { command }: Workplace,
  { what, id }: { what: string; id: string },
): ExitCode {
  if (!isJson) {
    notes.print(`Stopped following. ${what} continues: `, styled('cyan', command(`muster follow ${shortId(id)}`)))
    notes.print('To stop it: ', styled('cyan', command(`muster cancel ${shortId(id)}`)))
  }
  return exitCodes.interrupted
}

interface Following {
  /** Called with a run that is paused and followed further. */
  onWait: (run: RunAnswer) => void
  onEvent: (event: FollowedEvent & { id: string | null }) => void
  staysThroughWaits: boolean
}

async function follow(
  context: CommandContext,
  workplace: Workplace,
  run: RunAnswer,
  { onEvent, onWait, staysThroughWaits }: Following,
): Promise<RunAnswer> {
  const { client, signal } = context
  const { path } = workplace
  let now = run
  const isSettled = async (): Promise<boolean> => {
    now = await client.ask(path(`runs/${run.id}`), runAnswer)
    if (hasEnded(now)) return true
    return now.status === 'paused' && !staysThroughWaits && !(await isAboutToGoOn(context, workplace, now))
  }
  const options: FollowEventsOptions = { signal, isOver: isSettled, onTrouble: troubleTeller(context) }
  for await (const { id, event, data } of followEvents(client, path(`runs/${run.id}/events`), options)) {
    const fields = eventFields(data)
    if (fields === null) continue
    onEvent({ id, event, data: fields })
    if (fields.run_id !== run.id) continue
    if (!finalKinds.has(event) && event !== 'run.paused') continue
    const isOver = await isSettled()
    if (isOver && (event !== 'run.paused' || (await isLastPause(context, workplace, now, id)))) break
    onWait(now)
  }
  return now
}

const waitAnswer = z.looseObject({ seq: z.number(), duration: z.number().nullable() })
const MAX_WAITS = 10_000

/**
 * False for a pause that is over, because more events follow. The stream itself ends behind the last event of a run that
 * has ended, so no pause is taken for its last event here.
 */
async function isLastPause(
  { client }: CommandContext,
  { path }: Workplace,
  run: RunAnswer,
  eventId: string | null,
): Promise<boolean> {
  if (hasEnded(run)) return false
  const { items } = await readList(client, path(`runs/${run.id}/waits`), waitAnswer, { most: MAX_WAITS })
  return items.some(({ seq, duration }) => String(seq) === eventId && duration === null)
}

const anyFields = z.record(z.string(), z.unknown())

export function eventFields(data: string): Record<string, unknown> | null {
  try {
    return anyFields.safeParse(JSON.parse(data)).data ?? null
  } catch {
    return null
  }
}

export const troubleTeller =
  ({ notes, isJson }: CommandContext): FollowEventsOptions['onTrouble'] =>
  (state, reason) => {
    if (isJson) return
    if (state === 'back') notes.print(styled('yellow', 'The server is back.'))
    else notes.print(styled('yellow', `The connection is lost${reason ? ` (${reason})` : ''}. Trying again …`))
  }

async function conclude(
  context: CommandContext,
  workplace: Workplace,
  run: RunAnswer,
  { lastText, asEvents }: { lastText: string; asEvents: boolean },
): Promise<ExitCode> {
  const { out, notes, isJson } = context
  if (isJson) {
    if (!asEvents) out.print(jsonText(run))
    return exitCodeOf(run)
  }
  const summary = run.summary ?? ''
  // The summary of a run is its last text, unless a tool or a flow gave it.
  if (summary.trim() !== '' && visibleText(summary).trim() !== lastText.trim()) out.print(summary)
  const { step_count: steps, usage, duration } = run
  const figures = [
    `${steps} ${steps === 1 ? 'step' : 'steps'}`,
    tokensText(usage.total_tokens),
    ...(usage.cost_usd === null ? [] : [`$${usage.cost_usd.toFixed(4)}`]),
    ...(duration === null ? [] : [durationText(duration)]),
    shortId(run.id),
  ].join(' · ')
  if (run.status === 'failed') {
    notes.print(styled('red', `Failed: ${run.error_code ?? ''}`), ` ${run.error_message ?? ''}`)
  }
  if (run.status === 'cancelled') notes.print(styled('red', 'Cancelled.'))
  if (run.status === 'paused') {
    for (const line of explanationLines(await explainPause(context, workplace, run))) notes.print(...line)
  }
  if (run.status === 'failed' || run.status === 'cancelled') {
    const [next] = (await explainPause(context, workplace, run)).next
    if (run.agent_id !== null && next !== undefined) notes.print('To continue it: ', styled('cyan', next))
  }
  notes.print(styled('dim', `${run.status} · ${figures}`))
  return exitCodeOf(run)
}

export function exitCodeOf({ status }: Pick<RunAnswer, 'status'>): ExitCode {
  if (status === 'failed' || status === 'cancelled') return exitCodes.failed
  return status === 'paused' ? exitCodes.paused : exitCodes.done
}
