// Follows a flow run to its end: a live line on a terminal, a line per task in a pipe, the output at the end.
import { z } from 'zod'
import { type FlowRunAnswer, flowRunAnswer } from './answers.ts'
import type { CommandContext } from './command.ts'
import { durationText, tokensText } from './durations.ts'
import { type ExitCode, exitCodes } from './exit-codes.ts'
import { followEvents } from './follow-events.ts'
import { createLeafNotes } from './leaf-notes.ts'
import { progressLine } from './progress-line.ts'
import { styled } from './screen.ts'
import { shortId } from './short-id.ts'
import { jsonText, visibleLine } from './visible-text.ts'
import { eventFields, type FollowingOptions, tellGoingOn, troubleTeller } from './watch-run.ts'
import type { Workplace } from './workplace.ts'

/** The live line is drawn so often; the counts are read again when an event has come, and otherwise rarely. */
const DRAW_MS = 250
const READ_AGAIN_MS = 3_000

export async function watchFlowRun(
  context: CommandContext,
  workplace: Workplace,
  run: FlowRunAnswer,
  { asEvents = false }: Pick<FollowingOptions, 'asEvents'> = {},
): Promise<ExitCode> {
  const { client, signal, out, isJson } = context
  const path = workplace.path(`flow-runs/${run.id}`)
  const read = (): Promise<FlowRunAnswer> => client.ask(path, flowRunAnswer)
  const leaves = createLeafNotes(context, workplace, run.id)
  const bar = isJson ? null : startBar(context, run, read)
  try {
    let now = run
    const isOver = async (): Promise<boolean> => {
      now = await read()
      return hasFlowEnded(now)
    }
    const options = { signal, isOver, onTrouble: troubleTeller(context) }
    for await (const { id, event, data } of followEvents(client, `${path}/events`, options)) {
      const fields = eventFields(data)
      if (fields === null) continue
      bar?.touch()
      if (!isJson) await leaves.tell(event, fields)
      else if (asEvents) out.print(jsonText({ id, event, data: fields }))
      if (event.startsWith('flow.') && (await isOver())) break
    }
    leaves.finish()
    bar?.end()
    return conclude(context, now, asEvents)
  } catch (error) {
    leaves.finish()
    bar?.end()
    if (!signal.aborted) throw error
    return tellGoingOn(context, workplace, { what: 'The flow run', id: run.id })
  }
}

export const hasFlowEnded = ({ status }: Pick<FlowRunAnswer, 'status'>): boolean =>
  status !== 'queued' && status !== 'running'

interface Bar {
  /** Says that the counts have changed. */
  touch(): void
  end(): void
}

function startBar({ notes, now }: CommandContext, run: FlowRunAnswer, read: () => Promise<FlowRunAnswer>): Bar {
  if (!notes.isTerminal) return { touch: () => {}, end: () => {} }
  let shown = run
  let isStale = true
  let readAt = 0
  let isReading = false
  const refresh = async (): Promise<void> => {
    if (isReading || (!isStale && now() - readAt < READ_AGAIN_MS)) return
    isReading = true
    isStale = false
    readAt = now()
    // A server that does not answer is noticed by the stream of events.
    shown = await read().catch(() => shown)
    isReading = false
  }
  const draw = (): void => {
    void refresh()
    const { progress, eta, created_at, cancel_requested_at } = shown
    const elapsedMs = now() - Date.parse(created_at)
    const facts = { progress, eta, elapsedMs, isCancelling: cancel_requested_at !== null }
    notes.live(progressLine(facts, notes.columns(), now()))
  }
  const timer = setInterval(draw, DRAW_MS)
  draw()
  return {
    touch: () => {
      isStale = true
    },
    end: () => {
      clearInterval(timer)
      notes.live(null)
    },
  }
}

const cutOutput = z.object({ truncated: z.literal(true), url: z.string() })

function conclude({ out, notes, isJson }: CommandContext, run: FlowRunAnswer, asEvents: boolean): ExitCode {
  const exitCode = run.status === 'completed' ? exitCodes.done : exitCodes.failed
  if (isJson) {
    if (!asEvents) out.print(jsonText(run))
    return exitCode
  }
  const cut = cutOutput.safeParse(run.output).data
  if (cut) notes.print('The output is large: ', styled('cyan', `muster api GET ${visibleLine(cut.url)}`))
  else if (typeof run.output === 'string') out.print(run.output)
  else if (run.output !== null && run.output !== undefined) out.print(jsonText(run.output, 2))
  if (run.error !== null) notes.print(styled('red', `${run.status}: `), run.error)
  const { completed, total } = run.progress
  const figures = [
    `${completed} of ${total} leaves`,
    tokensText(run.usage.total_tokens),
    ...(run.duration === null ? [] : [durationText(run.duration)]),
    shortId(run.id),
  ]
  notes.print(styled('dim', `${run.status} · ${figures.join(' · ')}`))
  return exitCode
}
