// The output of the command: colours and a moving line on a terminal, plain lines in files and pipes.
import type { WriteStream } from 'node:tty'
import { styleText } from 'node:util'

type Style = Parameters<typeof styleText>[0]

export interface Terminal {
  print(text?: string): void
  paint(style: Style, text: string): string
  /** Shows the progress; on a terminal each sentence replaces the one before. */
  progress(sentence: string): void
  clearProgress(): void
}

export function createTerminal(stream: NodeJS.WriteStream & Partial<WriteStream> = process.stdout): Terminal {
  const isTerminal = stream.isTTY === true
  let shown = false
  const clearProgress = (): void => {
    if (shown) stream.write('\r\u001b[2K')
    shown = false
  }
  return {
    print: (text = '') => {
      clearProgress()
      stream.write(`${text}\n`)
    },
    // styleText honours NO_COLOR and FORCE_COLOR as well as the kind of stream.
    paint: (style, text) => styleText(style, text, { stream }),
    progress: (sentence) => {
      if (!isTerminal) {
        stream.write(`${sentence}\n`)
        return
      }
      clearProgress()
      stream.write(`${sentence} …`)
      shown = true
    },
    clearProgress,
  }
}
