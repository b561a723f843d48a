// Follows a flow run to its end: a live line on a terminal, a line per task in a pipe, the output at the end.
import { z } from 'zod'
import { type FlowRunAnswer, flowRunAnswer } from './answers.ts'
import type { CommandContext } from './command.ts'
import { durationText, tokensText } from './durations.ts'
import { type ExitCode, exitCodes } from './exit-codes.ts'
import { followEvents } from './follow-events.ts'
import { progressLine } from './progress-line.ts'
import { styled } from './screen.ts'
import { shortId } from './short-id.ts'
import { cutToWidth } from './text-width.ts'
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
  const tell = createTaskTeller(context, workplace)
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
      if (!isJson) tell(event, fields)
      else if (asEvents) out.print(jsonText({ id, event, data: fields }))
      if (event.startsWith('flow.') && (await isOver())) break
    }
    bar?.end()
    return conclude(context, now, asEvents)
  } catch (error) {
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

const taskFields = z.looseObject({
  task_id: z.string(),
  name: z.string().optional(),
  error: z.string().optional(),
  duration: z.number().optional(),
  run_id: z.string().optional(),
})
const alertFields = z.looseObject({ suspected_cause: z.string() })

/** A terminal has the live line, so only troubles are told there. */
function createTaskTeller({ notes }: CommandContext, workplace: Workplace): (event: string, data: unknown) => void {
  const names = new Map<string, string>()
  const line = (text: string): string => cutToWidth(visibleLine(text.slice(0, 2_000)), Math.min(notes.columns(), 500))
  return (event, data) => {
    const alert = alertFields.safeParse(data).data
    if (event === 'alert' && alert) notes.print(styled('yellow', line(`Slow: ${alert.suspected_cause}`)))
    const task = taskFields.safeParse(data).data
    if (!task) return
    if (task.name !== undefined) names.set(task.task_id, task.name)
    const name = names.get(task.task_id) ?? task.task_id
    if (event === 'task.failed') notes.print(styled('red', line(`${name} failed: ${task.error ?? ''}`)))
    if (event === 'task.waiting') {
      notes.print(
        styled('yellow', line(`${name} waits for a person: `)),
        styled('cyan', workplace.command('muster inbox')),
      )
    }
    if (notes.isTerminal) return
    if (event === 'task.started') notes.print(line(`${name} started`))
    if (event === 'task.completed') notes.print(line(`${name} completed (${durationText(task.duration ?? 0)})`))
    if (event === 'task.skipped') notes.print(line(`${name} skipped`))
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
