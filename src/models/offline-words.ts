// Words and short texts of the offline model's rules. The work is linear, and bounded by the rule's limit.
import { cutText } from '../kernel/cut-text.ts'
import { WORD } from '../kernel/phrases.ts'

/** A shortened text leaves out white space, so more than its length is read, but no more than this. */
const LONGEST_READ = 10_000

export const cut = (text: string, most: number): string => cutText(text, most, '…')

/** The text on one line, cut between words if it is longer than `most` characters. */
export function shortened(text: string, most: number): string {
  const read = text.slice(0, LONGEST_READ).replace(/\s+/g, ' ').trim()
  if (read.length <= most && text.length <= LONGEST_READ) return read
  const gap = read.lastIndexOf(' ', most - 1)
  return cut(gap >= most / 2 ? `${read.slice(0, gap).replace(/[,;:.]$/, '')} …` : read, most)
}

/** "a", "a and b", "a, b and c"; after `most` words the rest is counted. */
export function listed(words: readonly string[], most: number): string {
  const shown = words.length > most ? [...words.slice(0, most), `${words.length - most} more`] : words
  return shown.length < 2 ? shown.join('') : `${shown.slice(0, -1).join(', ')} and ${shown.at(-1)}`
}

/** The first sentence of a text without its stop, on one line. */
export function firstSentence(text: string, most: number): string {
  const start = text.slice(0, LONGEST_READ).trimStart()
  const end = /[.!?](?=\s|$)|\n/.exec(start)?.index ?? start.length
  return shortened(start.slice(0, end), most)
}

export const capitalised = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1)

/** "Write" in mid-sentence is "write"; "HTTP" stays. */
export const lowered = (text: string): string =>
  /^\p{Lu}\p{Ll}/u.test(text) ? text.charAt(0).toLowerCase() + text.slice(1) : text

/** Words that say nothing about the subject of a text. */
const FILLERS = new Set(
  `about above after again also among another any because been before being below between both come could does doing done
  each either else ever every first following from give gives have having here into just keep less like made make many
  more most much must need never next none nothing once only other others over please same shall should some such take
  than that their them then there these they thing things this those through under until upon very want were what
  when where whether which while will with within without would your`.split(/\s+/),
)

/** The first words of a text that may be its subject, each once. */
export function topicsOf(text: string, most: number): string[] {
  const topics = new Map<string, string>()
  for (const [word] of text.slice(0, LONGEST_READ).matchAll(WORD)) {
    const key = word.toLowerCase()
    if (word.length < 4 || word.length > 30 || FILLERS.has(key) || topics.has(key)) continue
    topics.set(key, word)
    if (topics.size === most) break
  }
  return [...topics.values()]
}
