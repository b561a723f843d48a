// How objects are called and laid out in tables.
import type { GraphObject, ObjectVersion } from '../../../../src/kernel/object.ts'
import type { Task } from '../../../../src/kernel/task.ts'
import { objectChanges } from '../../api/task-words.ts'
import { oneLine } from '../../parts/figures.ts'

/** The name that people would use: its key, its name or its title. */
export function objectName({ key, properties, id }: Pick<GraphObject, 'key' | 'properties' | 'id'>): string {
  const named = [key, properties.name, properties.title].find((text) => typeof text === 'string' && text.trim() !== '')
  return typeof named === 'string' ? oneLine(named, 80) : id.slice(-8)
}

const MOST_COLUMNS = 6

/** The properties that most of the objects have, the most frequent first. */
export function columnsOf(objects: readonly GraphObject[]): string[] {
  const counts = new Map<string, number>()
  for (const { properties } of objects) {
    for (const name of Object.keys(properties)) counts.set(name, (counts.get(name) ?? 0) + 1)
  }
  return [...counts]
    .toSorted(([, one], [, other]) => other - one)
    .slice(0, MOST_COLUMNS)
    .map(([name]) => name)
}

export interface PropertyChange {
  name: string
  kind: 'added' | 'removed' | 'changed'
  before: unknown
  after: unknown
}

/** The changes of a version; `before` is null for the first one. */
export function changesBetween(before: ObjectVersion['properties'] | null, after: ObjectVersion['properties']) {
  const names = [...new Set([...Object.keys(before ?? {}), ...Object.keys(after)])]
  return names.flatMap((name): PropertyChange[] => {
    const [hadIt, hasIt] = [Object.hasOwn(before ?? {}, name), Object.hasOwn(after, name)]
    const change = { name, before: before?.[name], after: after[name] }
    if (!hadIt) return [{ ...change, kind: 'added' }]
    if (!hasIt) return [{ ...change, kind: 'removed' }]
    return JSON.stringify(change.before) === JSON.stringify(change.after) ? [] : [{ ...change, kind: 'changed' }]
  })
}

/** True if an open suggestion would change the object or relate it. */
export const touches = (task: Task, objectId: string): boolean =>
  objectChanges(task).some(
    ({ op, object_id, after }) => object_id === objectId || (op === 'relate' && after?.to_id === objectId),
  )
