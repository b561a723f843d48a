// The notes about the leaves of a flow run that is followed, each in one line.
import { z } from 'zod'
import { type RunAnswer, runAnswer } from './answers.ts'
import type { CommandContext } from './command.ts'
import { durationText } from './durations.ts'
import { waitText } from './explain-pause.ts'
import { isNotFound } from './find-run.ts'
import { type Style, styled } from './screen.ts'
import { shortId } from './short-id.ts'
import { cutToWidth } from './text-width.ts'
import { visibleLine } from './visible-text.ts'
import type { Workplace } from './workplace.ts'

export interface LeafNotes {
  tell(event: string, data: Readonly<Record<string, unknown>>): Promise<void>
  /** Tells everything that was held back. */
  finish(): void
}

const taskFields = z.looseObject({
  task_id: z.string(),
  name: z.string().optional(),
  error: z.string().optional(),
  duration: z.number().optional(),
  run_id: z.string().optional(),
  waiting_for: z.string().optional(),
  taken_over: z.boolean().optional(),
})
type TaskFields = z.infer<typeof taskFields>
const alertFields = z.looseObject({ suspected_cause: z.string() })

/** A leaf that is kept has its start and its end in one commit, so they come together. */
const HOLD_MS = 500

/** A terminal has the live line, so only troubles are told there. */
export function createLeafNotes(context: CommandContext, workplace: Workplace, flowRunId: string): LeafNotes {
  const { notes } = context
  const names = new Map<string, string>()
  const waits = new Map<string, string>()
  const line = (text: string): string => cutToWidth(visibleLine(text.slice(0, 2_000)), Math.min(notes.columns(), 500))
  const note = (style: Style, text: string): void => notes.print(styled(style, line(text)))
  const noteInPipe = (text: string): void => {
    if (!notes.isTerminal) notes.print(line(text))
  }
  let held: { id: string; timer: NodeJS.Timeout } | null = null
  const finish = (): void => {
    if (held === null) return
    clearTimeout(held.timer)
    noteInPipe(`${nameOf(held.id)} started`)
    held = null
  }
  const nameOf = (id: string): string => names.get(id) ?? id

  function complete({ task_id: id, taken_over: isKept, duration = 0 }: TaskFields): void {
    if (isKept && held?.id === id) {
      clearTimeout(held.timer)
      held = null
    }
    finish()
    noteInPipe(isKept ? `${nameOf(id)}: kept` : `${nameOf(id)} completed (${durationText(duration)})`)
  }

  /** A leaf whose run waits for the same thing again has been told already. */
  async function wait({ task_id: id, run_id: runId, waiting_for: awaited = 'person' }: TaskFields): Promise<void> {
    const run = runId === undefined ? null : await readRun(context, workplace, runId)
    // The wait is over: this event is an old one.
    if (run !== null && !run.waiting_for) return
    const isForPerson = (run?.waiting_for ?? awaited) === 'person' || run?.waiting_for === 'approval'
    const words = isForPerson ? 'waits for a person' : run === null ? `waits for ${awaited}` : (waitText(run) ?? '')
    const known = `${run?.waiting_for ?? awaited} ${run?.wait_message ?? ''}`
    if (waits.get(id) === known) return
    waits.set(id, known)
    note('yellow', `${nameOf(id)} ${words}`)
    if (isForPerson) notes.print('To decide: ', styled('cyan', workplace.command('muster inbox')))
    if (run?.waiting_for?.startsWith('provider '))
      notes.print('To try at once: ', styled('cyan', workplace.command(`muster try-now ${shortId(flowRunId)}`)))
  }

  return {
    finish,
    async tell(event, data) {
      const alert = alertFields.safeParse(data).data
      if (event === 'alert' && alert) note('yellow', `Slow: ${alert.suspected_cause}`)
      const task = taskFields.safeParse(data).data
      if (!task) return
      if (task.name !== undefined) names.set(task.task_id, task.name)
      if (event === 'task.completed') return complete(task)
      // The pages of a source that is kept stand between its start and its end.
      if (event !== 'source.page') finish()
      if (event === 'task.started') held = { id: task.task_id, timer: setTimeout(finish, HOLD_MS) }
      if (event === 'task.failed') note('red', `${nameOf(task.task_id)} failed: ${task.error ?? ''}`)
      if (event === 'task.waiting') await wait(task)
      if (event === 'task.skipped') noteInPipe(`${nameOf(task.task_id)} skipped`)
    },
  }
}

/** Null for the wait of a function that asks a model: no run belongs to it. */
async function readRun({ client }: CommandContext, { path }: Workplace, runId: string): Promise<RunAnswer | null> {
  try {
    return await client.ask(path(`runs/${runId}`), runAnswer)
  } catch (error) {
    if (isNotFound(error)) return null
    throw error
  }
}
