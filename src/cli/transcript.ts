// A run as people follow it: the text of the run itself on `out`; tools, sub-runs and troubles on `notes`. A terminal
// shows tokens as they come. A pipe gets the text of a step when the step is complete, because text can become void
// when its step begins anew, and a pipe cannot take words back.
import { createRunNotes, type EventFields } from './run-notes.ts'
import type { Screen } from './screen.ts'
import { createSpeeches } from './speeches.ts'
import { visibleText } from './visible-text.ts'

export interface FollowedEvent {
  event: string
  data: EventFields
}

export interface Transcript {
  show(event: FollowedEvent): void
  /** Shows everything that waited for another run to finish its step. */
  finish(): void
  /** The last whole text of the run itself. */
  lastText(): string
}

interface TranscriptOptions {
  out: Screen
  notes: Screen
  runId: string
  agentName: (agentId: string) => string
}

export function createTranscript({ out, notes, runId, agentName }: TranscriptOptions): Transcript {
  const told = createRunNotes({ notes, runId, agentName })
  const speeches = createSpeeches({ ...told, runId, out, notes })
  /** The run whose text is on the last line; the events of other runs wait until its step is over. */
  let speaker: string | null = null
  let waiting: FollowedEvent[] = []

  function show(followed: FollowedEvent): void {
    const { event, data } = followed
    const run = String(data.run_id ?? runId)
    if (speaker !== null && run !== speaker) {
      waiting.push(followed)
      return
    }
    if (event === 'token') {
      if (speeches.hear(run, data)) speaker = run
      return
    }
    if (event === 'step.completed') speeches.complete(run, data)
    else if (event === 'step.restarted') speeches.restart(run, data)
    else told.tell(event, run, data)
    if (speaker === run) takeTurns()
  }

  /** The step of the speaker is over: the first run that waits is the next one. */
  function takeTurns(): void {
    speaker = null
    const events = waiting
    waiting = []
    for (const event of events) show(event)
  }

  return {
    show,
    finish: () => {
      do takeTurns()
      while (waiting.length > 0)
    },
    lastText: () => visibleText(speeches.lastText()),
  }
}
