// The columns that a text takes on a terminal: letters of East Asia and emoji take two, accents and joiners none.

const graphemes = new Intl.Segmenter('en', { granularity: 'grapheme' })

/** The text has no control characters: see visible-text.ts. */
export function textWidth(text: string): number {
  if (PLAIN.test(text)) return text.length
  let width = 0
  for (const { segment } of graphemes.segment(text)) width += widthOf(segment)
  return width
}

/** The beginning of the text that fits, with an ellipsis if something is left out. No character is cut in two. */
export function cutToWidth(text: string, width: number): string {
  // A text has at most two columns per UTF-16 unit, so a short one fits without measuring.
  if (text.length * 2 <= width || textWidth(text) <= width) return text
  if (width < 1) return ''
  let used = 0
  let cut = ''
  for (const { segment } of graphemes.segment(text)) {
    used += widthOf(segment)
    if (used > width - 1) break
    cut += segment
  }
  return `${cut}…`
}

export function padToWidth(text: string, width: number, side: 'left' | 'right' = 'right'): string {
  const room = ' '.repeat(Math.max(0, width - textWidth(text)))
  return side === 'right' ? text + mark(text) + room : room + text + mark(text)
}

/** Behind letters that run from right to left this mark keeps the next column in its place. It takes no room. */
const mark = (text: string): string => (RIGHT_TO_LEFT.test(text) ? '\u200e' : '')

function widthOf(grapheme: string): number {
  if (INVISIBLE.test(grapheme)) return 0
  return WIDE.test(grapheme) ? 2 : 1
}

const PLAIN = /^[\x20-\x7e]*$/
const INVISIBLE = /^[\p{Mark}\p{Cf}]+$/u
const RIGHT_TO_LEFT = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\u{10800}-\u{10fff}\u{1e800}-\u{1efff}]/u
// The ranges of Unicode's East Asian Width "wide" and "full", emoji, and signs that a selector makes emoji.
const WIDE =
  /^(?:[\u1100-\u115f\u2329\u232a\u2e80-\u303e\u3041-\u4dbf\u4e00-\ua4cf\ua960-\ua97c\uac00-\ud7a3\uf900-\ufaff\ufe10-\ufe19\ufe30-\ufe6b\uff01-\uff60\uffe0-\uffe6\u{16fe0}-\u{18cff}\u{1aff0}-\u{1b2ff}\u{1f200}-\u{1f265}\u{20000}-\u{3fffd}]|\p{Emoji_Presentation}|.\ufe0f|\p{Regional_Indicator}{2})/u
