// Names and texts come from models and other people. A terminal obeys control characters: they could move the cursor,
// set the title or hide words. They are shown as signs here, so that no text does anything but appear.

/** A tab and a line feed stay. `␛` shows an escape, `\uFFFD` a control character that has no sign of its own. */
export function visibleText(text: string): string {
  return text
    .toWellFormed()
    .replaceAll(/\r\n|[\u2028\u2029]/g, '\n')
    .replace(CONTROLS, signOf)
}

/** For a place that has room for one line. */
export const visibleLine = (text: string): string => visibleText(text).replaceAll(/\s+/g, ' ').trim()

/** For text that comes in pieces: a line end or a character may be cut in two by the pieces. */
export function createPieceReader(): { read(piece: string): string; rest(): string } {
  let held = ''
  return {
    read(piece) {
      const text = held + piece
      const isOpen = /[\r\uD800-\uDBFF]$/.test(text)
      held = isOpen ? text.slice(-1) : ''
      return visibleText(isOpen ? text.slice(0, -1) : text)
    },
    rest() {
      const text = held
      held = ''
      return visibleText(text)
    },
  }
}

/** JSON with the same value whose text has no control character, not even one that JSON would allow. */
export function jsonText(value: unknown, indent?: number): string {
  const text = JSON.stringify(value, null, indent) ?? 'null'
  return text.replace(ALLOWED_IN_JSON, (sign) => `\\u${sign.charCodeAt(0).toString(16).padStart(4, '0')}`)
}

// Also the characters that embed, override or isolate a direction of writing: they reorder the words around them.
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are the characters that must not be printed
const CONTROLS = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g
const ALLOWED_IN_JSON = /[\u007f-\u009f\u2028-\u202e\u2066-\u2069]/g

function signOf(control: string): string {
  const code = control.charCodeAt(0)
  if (code < 0x20) return String.fromCharCode(0x2400 + code)
  return code === 0x7f ? '\u2421' : '\uFFFD'
}
