// The rules for a layout that a model arranged. The model reads texts of strangers, so its answer may be hostile. The
// model may choose, order and explain; the facts that a person decides by, and the actions of buttons, are those of the
// layout that the facts gave.
import {
  type Component,
  type ComponentType,
  componentsOf,
  type Layout,
  type LeafComponent,
  layoutSchema,
} from '../kernel/genui.ts'
import { hasHtml } from '../kernel/safe-markup.ts'

export type Arranged = { ok: true; layout: Layout } | { ok: false; problem: string }

/** Components that may hold the model's own words; all others show figures or ask for input. */
const WORDS: readonly ComponentType[] = ['text', 'markdown']

/** With `isFree` the model may add inputs and tables of its own, because no decision depends on them. */
export function arrange(given: Layout, answered: Layout, { isFree }: { isFree: boolean }): Arranged {
  const parts = new Map(componentsOf(given).map((each) => [each.id, each]))
  const buttons = new Map(componentsOf(given).flatMap((each) => (each.type === 'button' ? [[keyOf(each), each]] : [])))
  const doors = doorsOf(given)
  const problems: string[] = []

  const components = answered.components.map(
    (each): Component => (each.type === 'group' ? { ...each, components: each.components.map(settle) } : settle(each)),
  )
  const missing = componentsOf(given).find((each) => isNeeded(each, given) && !isShown(each, components))
  if (missing) problems.push(`${missing.id} must be shown.`)
  if (problems[0] !== undefined) return { ok: false, problem: problems[0] }
  const parsed = layoutSchema.safeParse({ components })
  if (parsed.success) return { ok: true, layout: parsed.data }
  return { ok: false, problem: parsed.error.issues[0]?.message ?? 'The layout does not fit.' }

  /** The component as it will be shown. A component with the id of a given part is replaced by that part. */
  function settle(leaf: LeafComponent): LeafComponent {
    const part = parts.get(leaf.id)
    if (part && part.type !== leaf.type) return refuse(leaf, `${leaf.id} is a ${part.type}.`)
    if (part) return part
    if (leaf.type === 'button') return settleButton(leaf)
    if (!WORDS.includes(leaf.type) && !isFree) {
      return refuse(leaf, `${leaf.id} is none of the given components; a ${leaf.type} cannot be made up.`)
    }
    if (textsIn(leaf).some(hasHtml)) return refuse(leaf, `${leaf.id} must not hold HTML.`)
    if (leaf.type === 'table' && leaf.rows.some((row) => row.open && !doors.has(doorOf(row.open)))) {
      return refuse(leaf, `${leaf.id} opens something that is not among the given ids.`)
    }
    return leaf
  }

  /** A button with the action of a given button gets the label of the given button. */
  function settleButton(button: Extract<LeafComponent, { type: 'button' }>): LeafComponent {
    const same = buttons.get(keyOf(button))
    if (same) return { ...same, id: button.id }
    const { action } = button
    if (action.type === 'open' && doors.has(doorOf(action))) return button
    return refuse(button, `${button.id} has an action that no given button has.`)
  }

  function refuse(leaf: LeafComponent, problem: string): LeafComponent {
    problems.push(problem)
    return leaf
  }
}

/** A layout about a decision must show the whole change and have the buttons for the decision. */
function isNeeded(part: Component, given: Layout): boolean {
  if (part.type === 'diff') return true
  if (part.type === 'button') return part.action.type !== 'open'
  return (part.type === 'input' || part.type === 'select') && feedsButton(part.id, given)
}

const feedsButton = (id: string, given: Layout): boolean =>
  componentsOf(given).some((each) => each.type === 'button' && 'from' in each.action && each.action.from === id)

const isShown = (part: Component, components: Component[]): boolean =>
  componentsOf({ components }).some(
    (each) =>
      each.type === part.type &&
      (each.id === part.id || (each.type === 'button' && part.type === 'button' && keyOf(each) === keyOf(part))),
  )

const keyOf = ({ action }: Extract<LeafComponent, { type: 'button' }>): string =>
  JSON.stringify(Object.entries(action).toSorted(([a], [b]) => (a < b ? -1 : 1)))

const doorOf = ({ target, id }: { target: string; id: string }): string => `${target} ${id}`

/** The pages that the given layout links to. */
function doorsOf(given: Layout): Set<string> {
  return new Set(
    componentsOf(given).flatMap((each) => {
      if (each.type === 'button' && each.action.type === 'open') return [doorOf(each.action)]
      if (each.type === 'table') return each.rows.flatMap(({ open }) => (open ? [doorOf(open)] : []))
      return []
    }),
  )
}

function textsIn(value: unknown): string[] {
  if (typeof value === 'string') return [value]
  if (value === null || typeof value !== 'object') return []
  return Object.values(value).flatMap(textsIn)
}
