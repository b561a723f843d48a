// The state of the editor: the flow as it stands, its past and future, and a JSON text that is not yet right.
import { type JsonProblem, parseJson } from '../../parts/json-text.ts'
import { isNode, nearestPath } from './tree.ts'

export interface Flowing {
  name: string
  root: unknown
}

interface Moment extends Flowing {
  /** The path of the chosen node. */
  selected: string
}

export interface Editing {
  past: readonly Moment[]
  now: Moment
  future: readonly Moment[]
  /** The text of the JSON panel while somebody writes there. Null: the text of the tree. */
  text: string | null
  /** Why the text is no JSON. The tree stays as it was. */
  problem: JsonProblem | null
  /** Edits with the same tag, such as the letters of one field, are undone together. */
  tag: string | null
}

export type Action =
  | { type: 'edit'; root: unknown; path?: string; tag?: string }
  | { type: 'name'; name: string }
  | { type: 'replace'; flow: Flowing }
  | { type: 'select'; path: string }
  | { type: 'json'; text: string }
  | { type: 'discard' }
  | { type: 'undo' }
  | { type: 'redo' }
  | { type: 'load'; flow: Flowing }

const MOST_STEPS = 200

export const editingOf = (flow: Flowing): Editing => ({
  past: [],
  now: { ...flow, selected: 'root' },
  future: [],
  text: null,
  problem: null,
  tag: null,
})

export function nextEditing(state: Editing, action: Action): Editing {
  const { now } = state
  switch (action.type) {
    case 'edit': {
      const selected = nearestPath(action.root, action.path ?? now.selected)
      return changed(state, { ...now, root: action.root, selected }, action.tag ?? null)
    }
    case 'name':
      return { ...changed(state, { ...now, name: action.name }, 'name'), text: state.text, problem: state.problem }
    case 'replace':
      return changed(state, { ...action.flow, selected: 'root' }, null)
    case 'select':
      return { ...state, now: { ...now, selected: nearestPath(now.root, action.path) }, tag: null }
    case 'json':
      return written(state, action.text)
    case 'discard':
      return { ...state, text: null, problem: null, tag: null }
    case 'undo': {
      const before = state.past.at(-1)
      // A text that is no JSON is what the last keystrokes made: to undo them is to see the tree's text again.
      if (state.problem) return { ...state, text: null, problem: null, tag: null }
      if (!before) return state
      return { ...settled, past: state.past.slice(0, -1), now: before, future: [now, ...state.future] }
    }
    case 'redo': {
      const [after, ...later] = state.future
      return after && !state.problem ? { ...settled, past: [...state.past, now], now: after, future: later } : state
    }
    case 'load':
      return editingOf(action.flow)
  }
}

const settled = { text: null, problem: null, tag: null }

function changed(state: Editing, now: Moment, tag: string | null): Editing {
  const isSame = tag !== null && tag === state.tag
  const past = isSame ? state.past : [...state.past, state.now].slice(-MOST_STEPS)
  return { past, now, future: [], text: null, problem: null, tag }
}

function written(state: Editing, text: string): Editing {
  const parsed = parseJson(text)
  if ('problem' in parsed) return { ...state, text, problem: parsed.problem }
  const { now } = state
  const selected = nearestPath(parsed.value, now.selected)
  return { ...changed(state, { ...now, root: parsed.value, selected }, 'json'), text }
}

export const textOf = (root: unknown): string => JSON.stringify(root, null, 2) ?? ''

/** The order of the fields does not count: the database keeps its own. */
export const isSameFlow = (one: Flowing, other: Flowing): boolean =>
  one.name === other.name && (one.root === other.root || inOrder(one.root) === inOrder(other.root))

const inOrder = (root: unknown): string =>
  JSON.stringify(root, (_, value: unknown) =>
    isNode(value) ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))) : value,
  )
