import type { Db } from '../db/pool.ts'
import { canonicalJson } from '../kernel/canonical-json.ts'
import { type GraphChange, type GraphObject, relationshipInput } from '../kernel/object.ts'
import type { SuggestedChange } from '../kernel/task.ts'
import { findObject } from './objects.ts'
import { isTooLarge, TOO_LARGE_PROBLEM } from './write-objects.ts'

/** A change as people see it before they decide: the present properties, and those after the change. */
export async function suggestionFor(
  tx: Db,
  projectId: string,
  change: GraphChange,
): Promise<SuggestedChange | { problem: string }> {
  if (change.op === 'create') {
    const { type, key, properties } = change
    if (isTooLarge(properties)) return { problem: TOO_LARGE_PROBLEM }
    if (key !== null && (await isTaken(tx, projectId, type, key))) {
      return { problem: 'There is an object of this type and key already. Suggest a change of that one.' }
    }
    return {
      op: 'create',
      object_type: type,
      object_id: null,
      key,
      base_version: null,
      before: null,
      after: properties,
    }
  }
  const object = await findObject(tx, projectId, change.op === 'relate' ? change.fromId : change.id)
  if (!object || object.deleted_at !== null) return { problem: 'There is no such object in this project.' }
  if (change.op === 'relate') return relation(object, change)
  if (change.expectedVersion !== null && change.expectedVersion !== object.version) {
    return { problem: `The object is at version ${object.version} by now. Read it again before you suggest a change.` }
  }
  const target = { object_type: object.type, object_id: object.id, base_version: object.version }
  if (change.op === 'delete') return { op: 'delete', ...target, before: object.properties, after: null }
  const after = { ...object.properties, ...change.properties }
  if (canonicalJson(after) === canonicalJson(object.properties)) {
    return { problem: 'The object has these properties already: there is nothing to suggest.' }
  }
  if (isTooLarge(after)) return { problem: TOO_LARGE_PROBLEM }
  return { op: 'update', ...target, before: object.properties, after }
}

async function isTaken(tx: Db, projectId: string, type: string, key: string): Promise<boolean> {
  const { rowCount } = await tx.query(
    'select from objects where project_id = $1 and type = $2 and key = $3 and deleted_at is null',
    [projectId, type, key],
  )
  return rowCount === 1
}

/** An edge has no base version: a change of its two objects while people decide does not touch the edge. */
function relation(from: GraphObject, change: Extract<GraphChange, { op: 'relate' }>): SuggestedChange {
  const { type, fromId, toId, properties } = change
  return {
    op: 'relate',
    object_type: from.type,
    object_id: from.id,
    base_version: null,
    before: null,
    after: { type, from_id: fromId, to_id: toId, properties },
  }
}

/** The change that an approval writes. An update writes the `after` that people saw, onto the version that they saw. */
export function changeOf(suggested: SuggestedChange): GraphChange {
  const { op, object_id: id, base_version: expectedVersion } = suggested
  const after = suggested.after ?? {}
  switch (op) {
    case 'create':
      return { op, type: suggested.object_type, key: suggested.key ?? null, properties: after }
    case 'update':
      return { op, id: id ?? '', properties: after, expectedVersion }
    case 'delete':
      return { op, id: id ?? '', expectedVersion }
    case 'relate': {
      const { type, from_id, to_id, properties } = relationshipInput.parse(after)
      return { op, type, fromId: from_id, toId: to_id, properties: properties ?? {} }
    }
  }
}
