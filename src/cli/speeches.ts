// The text of the steps under way, one of each run. Text comes in pieces that may come twice, and may become void.
import { z } from 'zod'
import { durationText } from './durations.ts'
import type { EventFields, RunNotes } from './run-notes.ts'
import { type Screen, styled } from './screen.ts'
import { createPieceReader, visibleLine } from './visible-text.ts'

export interface Speeches {
  /** Shows the new part of a piece; answers whether the line of this run is open now. */
  hear(run: string, data: EventFields): boolean
  complete(run: string, data: EventFields): void
  restart(run: string, data: EventFields): void
  /** The last whole text of the run itself. */
  lastText(): string
}

interface SpeechOptions extends RunNotes {
  runId: string
  out: Screen
  notes: Screen
}

const tokenData = z.looseObject({ step: z.number(), offset: z.number(), text: z.string() })
const stepData = z.looseObject({ step: z.number(), text: z.string().default('') })
const restartData = z.looseObject({
  step: z.number(),
  reason: z.string().default('failed'),
  message: z.string().optional(),
  wait: z.number().optional(),
})
type Restart = z.infer<typeof restartData>

/** `shown` counts the letters that stand on the screen. */
interface Speech {
  step: number
  text: string
  shown: number
  reader: ReturnType<typeof createPieceReader>
}

const beginSpeech = (step: number): Speech => ({ step, text: '', shown: 0, reader: createPieceReader() })

export function createSpeeches({ runId, out, notes, note, marginOf }: SpeechOptions): Speeches {
  const speeches = new Map<string, Speech>()
  let lastText = ''
  const isOwn = (run: string): boolean => run === runId
  const screenOf = (run: string): Screen => (isOwn(run) ? out : notes)

  function speechOf(run: string, step: number): Speech {
    const known = speeches.get(run)
    if (known && known.step >= step) return known
    const speech = beginSpeech(step)
    speeches.set(run, speech)
    return speech
  }

  function sayMore(run: string, speech: Speech): void {
    say(run, speech.reader.read(speech.text.slice(speech.shown)), speech.shown === 0)
    speech.shown = speech.text.length
  }

  function say(run: string, text: string, isFirst: boolean): void {
    if (text === '') return
    if (isOwn(run)) out.write(text)
    else notes.write(styled('dim', (isFirst ? marginOf(run) : '') + text.replaceAll('\n', `\n${marginOf(run)}`)))
  }

  return {
    /** A piece that leaves a gap waits for the whole text. */
    hear(run, data) {
      const parsed = tokenData.safeParse(data)
      if (!parsed.success || !screenOf(run).isTerminal) return false
      const { step, offset, text } = parsed.data
      const speech = speechOf(run, step)
      if (step < speech.step || offset > speech.text.length) return false
      speech.text += text.slice(speech.text.length - offset)
      sayMore(run, speech)
      return true
    },
    complete(run, data) {
      const parsed = stepData.safeParse(data)
      if (!parsed.success) return
      const { step, text } = parsed.data
      if (isOwn(run) && text.trim() !== '') lastText = text
      let speech = speechOf(run, step)
      if (!text.startsWith(speech.text)) {
        note(run, styled('yellow', 'The text was changed. This is the one that counts:'))
        speech = beginSpeech(step)
      }
      speech.text = text
      sayMore(run, speech)
      say(run, speech.reader.rest(), false)
      if (text !== '' && !(isOwn(run) && text.endsWith('\n'))) screenOf(run).write('\n')
      // A later piece of this step is an old one.
      speeches.set(run, beginSpeech(step + 1))
    },
    restart(run, data) {
      const parsed = restartData.safeParse(data)
      if (!parsed.success) return
      const { step } = parsed.data
      const old = speeches.get(run)
      const isVoid = old?.step === step && old.shown > 0
      note(run, styled('yellow', `${restartText(parsed.data, isVoid)}${isVoid ? ': the text above is void' : ''}.`))
      speeches.set(run, beginSpeech(step))
    },
    lastText: () => lastText,
  }
}

/** "The model call failed (kitchen answered 503: Closed), trying again in 4.0 s" */
function restartText({ reason, message, wait }: Restart, isVoid: boolean): string {
  if (reason !== 'failed') return RESTART_REASONS[reason] ?? 'The model is asked again'
  const words = visibleLine(message?.slice(0, MAX_REASON) ?? '').replace(/[.\s]+$/, '')
  const again =
    wait === undefined ? (isVoid ? ', and the model is asked again' : '') : `, trying again in ${durationText(wait)}`
  return `${isVoid ? 'The answer was cut off' : 'The model call failed'}${words ? ` (${words})` : ''}${again}`
}

const MAX_REASON = 200

const RESTART_REASONS: Readonly<Record<string, string>> = {
  crash: 'The server stopped in the middle of the answer, and the model is asked again',
  handed_back: 'Another server takes the run over, and the model is asked again',
  timeout: 'The answer took too long, and the model is asked again',
  halted: 'The project was halted in the middle of the answer',
  too_long: 'The conversation no longer fits the model, and is shortened',
}
