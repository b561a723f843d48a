// The notes about a run that is followed: tools, sub-runs and troubles, each in one line.
import { z } from 'zod'
import { providerWords } from '../kernel/why-stopped.ts'
import { durationText } from './durations.ts'
import { type Screen, type StyledText, styled } from './screen.ts'
import { shortId } from './short-id.ts'
import { cutToWidth, textWidth } from './text-width.ts'
import { jsonText, visibleLine } from './visible-text.ts'

export type EventFields = Readonly<Record<string, unknown>>

export interface RunNotes {
  note(run: string, ...texts: StyledText[]): void
  /** The lines of a sub-run begin with the name of its agent. */
  marginOf(run: string): string
  /** Tells the events that it knows, and passes over the others. */
  tell(event: string, run: string, data: EventFields): void
}

/** The longest note in a pipe, in characters. */
const LONGEST_NOTE = 300

const toolData = z.looseObject({ name: z.string(), args: z.unknown() })
const toolResult = z.looseObject({ name: z.string(), result: z.unknown(), is_error: z.boolean(), duration: z.number() })

export function createRunNotes({
  notes,
  runId,
  agentName,
}: {
  notes: Screen
  runId: string
  agentName: (agentId: string) => string
}): RunNotes {
  const names = new Map<string, string>()
  /** The runs that wait for their provider. */
  const awaiting = new Set<string>()
  const isOwn = (run: string): boolean => run === runId
  const marginOf = (run: string): string => (isOwn(run) ? '' : `  ${visibleLine(names.get(run) ?? shortId(run))} │ `)
  const note = (run: string, ...texts: StyledText[]): void =>
    notes.print(...(isOwn(run) ? [] : [styled('dim', marginOf(run))]), ...texts)
  /** One line that fits the window. */
  const line = (run: string, text: string): string => {
    const room = notes.columns() - textWidth(marginOf(run))
    const start = visibleLine(text.slice(0, 2 * LONGEST_NOTE))
    return cutToWidth(start, Number.isFinite(room) ? Math.max(10, room) : LONGEST_NOTE)
  }

  const tellers: Readonly<Record<string, (run: string, data: EventFields) => void>> = {
    'run.started': (run, { agent_id: agentId }) => {
      if (typeof agentId === 'string') names.set(run, agentName(agentId))
      if (!isOwn(run)) note(run, styled('dim', 'starts'))
    },
    'tool.started': (run, data) => {
      const parsed = toolData.safeParse(data)
      if (!parsed.success) return
      const { name, args } = parsed.data
      note(run, styled('cyan', line(run, `→ ${name} ${jsonText(args)}`)))
    },
    'tool.completed': (run, data) => {
      const parsed = toolResult.safeParse(data)
      if (!parsed.success) return
      const { name, result, is_error: isError, duration } = parsed.data
      const text = typeof result === 'string' ? result : jsonText(result)
      note(run, styled(isError ? 'red' : 'dim', line(run, `← ${name} (${durationText(duration)}) ${text}`)))
    },
    'run.recovered': (run) => note(run, styled('yellow', 'Another process took over the run.')),
    'run.continued': (run) => {
      note(run, styled('dim', awaiting.delete(run) ? 'Trying again.' : 'The run continues.'))
    },
    'flow.started': (run, { flow_run_id: id }) =>
      note(run, styled('dim', `The flow run ${shortId(String(id))} has started.`)),
    // The end of the run itself is told when the run is read again.
    'run.paused': (run, data) => {
      if (providerWait.safeParse(data).success) awaiting.add(run)
      if (!isOwn(run)) note(run, styled('yellow', line(run, pauseText(data))))
    },
    'run.failed': (run, { error_message: message }) => {
      if (!isOwn(run)) note(run, styled('red', line(run, `failed: ${message}`)))
    },
  }
  return { note, marginOf, tell: (event, run, data) => tellers[event]?.(run, data) }
}

const providerWait = z.looseObject({
  provider_wait: z.looseObject({ provider: z.string() }),
  error_message: z.string().optional(),
})

function pauseText(data: EventFields): string {
  const { success, data: wait } = providerWait.safeParse(data)
  if (!success) return `waits (${data.pause_reason})`
  const { provider_wait: awaited, error_message: message } = wait
  const provider = `provider ${awaited.provider}`
  return `waits for ${provider}${providerWords({ waiting_for: provider, wait_message: message ?? null }) ?? ''}`
}
