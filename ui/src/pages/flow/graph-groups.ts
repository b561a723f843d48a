// Folds the tasks of a large flow run into groups, so that the graph has few boxes at first and each task can still be
// reached by opening groups. Tasks that wait for the same tasks become one group, and so do tasks that follow one
// another; groups are folded again in the same way until the rest can be read.
import type { TaskRow } from './flow-store.ts'

export type UnitKind = 'task' | 'beside' | 'in turn' | 'part'

/** A box of the graph: one task, or a group. */
export interface Unit {
  id: string
  kind: UnitKind
  /** The tasks that the unit stands for. */
  ids: readonly string[]
  /** The units that an open group shows; empty for a task. */
  children: readonly Unit[]
}

type Task = Pick<TaskRow, 'id' | 'parent_id' | 'depends_on'>

/** Up to this number of boxes nothing is folded at first. */
export const FEW_BOXES = 80
/** An open group shows at most this number of boxes; a larger group is dealt into parts. */
const MOST_BOXES = 600
const PART_SIZE = 100
/** Fewer siblings than this are no group while the graph can be read without one. */
const FEWEST = 12
const MOST_ROUNDS = 12

/** The outermost units, in the order of their first tasks. */
export function foldTasks(tasks: readonly Task[]): Unit[] {
  let units = tasks.map(({ id }): Unit => ({ id, kind: 'task', ids: [id], children: [] }))
  const parents = new Map(tasks.map(({ id, parent_id }) => [id, parent_id]))
  const parentOf = ({ id }: Unit): string => parents.get(id) ?? ''
  units = foldBeside(units, tasks, FEWEST, parentOf)
  units = foldInTurn(units, tasks, FEWEST)
  for (let round = 0; units.length > FEW_BOXES && round < MOST_ROUNDS; round++) {
    const before = units.length
    units = foldInTurn(units, tasks, 2)
    if (units.length > FEW_BOXES) units = foldBeside(units, tasks, 2, () => '')
    if (units.length === before) break
  }
  return units.length > MOST_BOXES ? partsOf(units) : units
}

/** Units that wait for the same units. */
function foldBeside(
  units: readonly Unit[],
  tasks: readonly Task[],
  fewest: number,
  parentOf: (unit: Unit) => string,
): Unit[] {
  const { before } = linksOf(units, tasks)
  const keyOf = (unit: Unit): string => JSON.stringify([parentOf(unit), [...(before.get(unit.id) ?? [])].toSorted()])
  return [...Map.groupBy(units, keyOf).values()].flatMap((group) =>
    group.length < fewest ? group : [groupOf('beside', group)],
  )
}

/** Units of which each waits for the one before it alone, and is the only one that does. */
function foldInTurn(units: readonly Unit[], tasks: readonly Task[], fewest: number): Unit[] {
  const { before, after } = linksOf(units, tasks)
  const byId = new Map(units.map((unit) => [unit.id, unit]))
  const only = (ids: ReadonlySet<string> | undefined): Unit | undefined => {
    const [first] = ids ?? []
    return ids?.size === 1 && first !== undefined ? byId.get(first) : undefined
  }
  const nextOf = (unit: Unit): Unit | undefined => {
    const next = only(after.get(unit.id))
    return next && only(before.get(next.id)) === unit ? next : undefined
  }
  const followers = new Set(units.flatMap((unit) => nextOf(unit) ?? []))
  return units.flatMap((unit) => {
    if (followers.has(unit)) return []
    const chain: Unit[] = []
    for (let each: Unit | undefined = unit; each; each = nextOf(each)) chain.push(each)
    return chain.length < fewest ? chain : [groupOf('in turn', chain)]
  })
}

/** The units that each unit waits for, and the units that wait for it. */
function linksOf(units: readonly Unit[], tasks: readonly Task[]) {
  const unitOf = new Map(units.flatMap(({ id, ids }) => ids.map((task) => [task, id] as const)))
  const before = new Map<string, Set<string>>()
  const after = new Map<string, Set<string>>()
  for (const { id, depends_on } of tasks) {
    const to = unitOf.get(id) ?? id
    for (const earlier of depends_on) {
      const from = unitOf.get(earlier)
      if (from === undefined || from === to) continue
      before.set(to, (before.get(to) ?? new Set()).add(from))
      after.set(from, (after.get(from) ?? new Set()).add(to))
    }
  }
  return { before, after }
}

const groupOf = (kind: UnitKind, children: readonly Unit[]): Unit => ({
  // The first task of a group stays the first while others come, so an open group stays open.
  id: `${kind} ${children[0]?.id}`,
  kind,
  ids: children.flatMap(({ ids }) => ids),
  children: children.length > MOST_BOXES ? partsOf(children) : children,
})

function partsOf(units: readonly Unit[]): Unit[] {
  const parts: Unit[] = []
  for (let from = 0; from < units.length; from += PART_SIZE) {
    parts.push(groupOf('part', units.slice(from, from + PART_SIZE)))
  }
  return parts
}

/** The groups around each task, the outermost first. */
export function groupsAround(units: readonly Unit[]): Map<string, readonly string[]> {
  const found = new Map<string, readonly string[]>()
  const walk = (level: readonly Unit[], around: readonly string[]): void => {
    for (const { id, kind, children } of level) {
      if (kind === 'task') found.set(id, around)
      else walk(children, [...around, id])
    }
  }
  walk(units, [])
  return found
}

/** All groups, of any depth. */
export const allGroups = (units: readonly Unit[]): string[] =>
  units.flatMap(({ id, children }) => (children.length === 0 ? [] : [id, ...allGroups(children)]))
