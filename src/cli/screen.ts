// The two streams of a command: results go to `out`, everything said about them to `notes`. All text passes through
// visible-text.ts here, and styles are added afterwards: no other file writes to a terminal.
import { styleText } from 'node:util'
import { visibleText } from './visible-text.ts'

export type Style = Parameters<typeof styleText>[0]
export type StyledText = string | { style: Style; text: string }

export const styled = (style: Style, text: string): StyledText => ({ style, text })

/** The part of a process's stream that a screen uses. */
export type ScreenStream = NodeJS.WritableStream & { isTTY?: boolean; columns?: number }

export interface Screen {
  readonly isTerminal: boolean
  /** The width of the window; unlimited in a pipe. */
  columns(): number
  /** One line, or several if the text has line ends. */
  print(...spans: StyledText[]): void
  /** Text without a line end. */
  write(...spans: StyledText[]): void
  /** Replaces the live line below the text; null removes it. Pipes have no live line. */
  live(spans: readonly StyledText[] | null): void
}

export interface Screens {
  out: Screen
  notes: Screen
}

/** In a narrower window, lines wrap. */
const NARROWEST = 20

export function createScreens(streams: { out: ScreenStream; notes: ScreenStream }): Screens {
  const out = createWindow()
  // Two terminals are one window: before one stream writes, the live line or the open line of the other is ended.
  const isOneWindow = streams.out.isTTY === true && streams.notes.isTTY === true
  return { out: createScreen(streams.out, out), notes: createScreen(streams.notes, isOneWindow ? out : createWindow()) }
}

/** The last line of a window: a live line, or a line of this stream that has no end yet. */
interface Window {
  isLive: boolean
  openBy: ScreenStream | null
}

const createWindow = (): Window => ({ isLive: false, openBy: null })

export function createScreen(stream: ScreenStream, window = createWindow()): Screen {
  const isTerminal = stream.isTTY === true
  const render = (spans: readonly StyledText[]): string => spans.map((span) => renderSpan(span, stream)).join('')
  const endLastLine = (): string => {
    const end = window.isLive ? CLEAR_LINE : window.openBy ? '\n' : ''
    Object.assign(window, createWindow())
    return end
  }
  return {
    isTerminal,
    columns: () => (isTerminal ? Math.max(NARROWEST, stream.columns ?? 80) : Number.POSITIVE_INFINITY),
    print(...spans) {
      stream.write(`${endLastLine()}${render(spans)}\n`)
    },
    write(...spans) {
      const text = render(spans)
      if (text === '') return
      stream.write((window.openBy === stream ? '' : endLastLine()) + text)
      window.openBy = STYLED_END.test(text) ? null : stream
    },
    live(spans) {
      if (!isTerminal) return
      const end = spans === null && !window.isLive ? '' : endLastLine()
      stream.write(end + render(spans ?? []))
      if (spans !== null) window.isLive = true
    },
  }
}

const CLEAR_LINE = '\r\u001b[2K'
// biome-ignore lint/suspicious/noControlCharactersInRegex: a style that ends behind the line end
const STYLED_END = /\n(?:\u001b\[\d+m)*$/

/** styleText honours NO_COLOR and FORCE_COLOR as well as the kind of stream. */
function renderSpan(span: StyledText, stream: ScreenStream): string {
  if (typeof span === 'string') return visibleText(span)
  return styleText(span.style, visibleText(span.text), { stream })
}
