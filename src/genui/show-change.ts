import { cutText } from '../kernel/cut-text.ts'
import { LONGEST_LABEL, LONGEST_VALUE, MOST_FIELDS, type OfType } from '../kernel/genui.ts'
import { changeVerbs, type SuggestedChange } from '../kernel/task.ts'
import { asLabel, visible } from './plain-text.ts'

type Diff = OfType<'diff'>
type FieldChange = Diff['changes'][number]

/** The change by property. A person decides by this text, so no mark in a value may hide, and a cut is marked. */
export function showChange(id: string, change: SuggestedChange, characters: number): Diff & { is_whole: boolean } {
  const before = change.before ?? {}
  const after = change.after ?? {}
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])]
  const changes: FieldChange[] = []
  let [room, unchanged, isWhole] = [characters, 0, true]
  for (const name of names) {
    // Only own properties count, because a property may have the name of one that every object has.
    const was = Object.hasOwn(before, name) ? before[name] : undefined
    const willBe = Object.hasOwn(after, name) ? after[name] : undefined
    const kind = kindOf(was, willBe)
    if (kind === 'same') {
      unchanged++
      continue
    }
    if (changes.length === MOST_FIELDS || room <= 0) {
      isWhole = false
      break
    }
    const most = Math.min(LONGEST_VALUE, Math.max(1, Math.floor(room / 2)))
    const texts = [was, willBe].map((value) => (value === undefined ? null : textOf(value)))
    const [shownBefore = null, shownAfter = null] = texts.map((text) =>
      text === null ? null : cutText(text, most, '…'),
    )
    const field = visible(name)
    if (texts.some((text) => text !== null && text.length > most) || field.length > LONGEST_LABEL) isWhole = false
    room -= field.length + (shownBefore?.length ?? 0) + (shownAfter?.length ?? 0)
    changes.push({ field: cutText(field, LONGEST_LABEL, '…'), kind, before: shownBefore, after: shownAfter })
  }
  return { type: 'diff', id, title: titleOf(change), changes, unchanged, is_whole: isWhole }
}

function titleOf({ op, object_type: type, key, base_version: version }: SuggestedChange): string {
  const name = key ? ` ${key}` : ''
  return asLabel(visible(`${changeVerbs[op]} ${type}${name}${version === null ? '' : `, as of version ${version}`}`))
}

function kindOf(was: unknown, willBe: unknown): FieldChange['kind'] | 'same' {
  if (was === undefined) return 'added'
  if (willBe === undefined) return 'removed'
  return JSON.stringify(was) === JSON.stringify(willBe) ? 'same' : 'changed'
}

/** Writes strings in quotes, so that "1" is not taken for 1, and longer texts without quotes. */
function textOf(value: unknown): string {
  if (typeof value === 'string' && value.includes('\n')) return visible(value)
  return visible(JSON.stringify(value, null, 2))
}
