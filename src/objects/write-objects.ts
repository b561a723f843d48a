// The one write path of the graph: object, version, audit entry and reactions of every change are committed together.

import { setImmediate as giveWay } from 'node:timers/promises'
import { noteValues } from '../audit/record.ts'
import { createBatches } from '../db/batches.ts'
import type { Db, Pool } from '../db/pool.ts'
import { inTransaction } from '../db/transaction.ts'
import { canonicalJson } from '../kernel/canonical-json.ts'
import { defined } from '../kernel/defined.ts'
import { unavailable } from '../kernel/errors.ts'
import { newId } from '../kernel/id.ts'
import type { GraphChange, GraphObject } from '../kernel/object.ts'
import type { Author } from './author.ts'
import { type ObjectRow, toObject } from './object-row.ts'
import { objectWords } from './object-words.ts'
import { findByKey, findObject } from './objects.ts'
import { type SetsOff, writeStatements } from './write-statements.ts'

export type ObjectChange = Exclude<GraphChange, { op: 'relate' }>

interface ObjectWrite<Change extends ObjectChange = ObjectChange> {
  projectId: string
  change: Change
  author: Author
}

/** `started` is the number of runs that the change started. */
export type WrittenObject = { kind: 'written'; object: GraphObject; started: number }
/** missing: no such live object · moved: another version · taken: the live object `id` has this type and key. */
export type WriteOutcome =
  | WrittenObject
  | { kind: 'unchanged'; object: GraphObject }
  | { kind: 'missing' }
  | { kind: 'moved'; version: number }
  | { kind: 'taken'; id: string | null }
  | { kind: 'too_large' }

interface ObjectPut extends Omit<ObjectWrite, 'change'> {
  type: string
  key: string
  properties: Record<string, unknown>
}

export interface ObjectWriter {
  write(request: ObjectWrite): Promise<WriteOutcome>
  /** Writes within the caller's transaction, which keeps the object locked until it ends. */
  writeIn(tx: Db, request: ObjectWrite): Promise<WriteOutcome>
  /** Creates the object with this type and key, or merges the properties into it: of two at once one creates it. */
  put(request: ObjectPut): Promise<WriteOutcome>
}

export function createObjectWriter({ pool, setsOff }: { pool: Pool; setsOff: SetsOff }): ObjectWriter {
  const statements = writeStatements(setsOff)
  const createTogether = createBatches<ObjectWrite<Creation>, WriteOutcome>((creations) => createAll(pool, creations))

  async function write(request: ObjectWrite): Promise<WriteOutcome> {
    if (isCreation(request)) return sayingWhose(pool, request, await createTogether(request))
    // Mostly nobody else writes the same object: one read is enough, and one statement that finds the object unchanged.
    // A deletion locks the object first: it also deletes edges that were committed while it waited for the lock.
    const isUpdate = request.change.op === 'update'
    const outcome = isUpdate ? await changeKnown(pool, request as ObjectWrite<Alteration>, false) : null
    return outcome ?? inTransaction(pool, (tx) => changeLocked(tx, request as ObjectWrite<Alteration>))
  }

  return {
    write,
    async writeIn(tx, request) {
      if (isCreation(request)) return sayingWhose(tx, request, (await createAll(tx, [request]))[0] ?? TAKEN)
      return changeLocked(tx, request as ObjectWrite<Alteration>)
    },
    async put({ type, key, properties, ...shared }) {
      let id = await findByKey(pool, shared.projectId, type, key)
      for (let attempt = 0; attempt < MOST_ATTEMPTS; attempt++) {
        const change: ObjectChange =
          id === null
            ? { op: 'create', type, key, properties }
            : { op: 'update', id, properties, expectedVersion: null }
        const outcome = await write({ ...shared, change })
        if (outcome.kind !== 'taken' && outcome.kind !== 'missing') return outcome
        // Somebody else created the object since, or deleted it.
        id = outcome.kind === 'taken' ? outcome.id : null
      }
      throw unavailable('Others create and delete the object with this key all the time. Try again.')
    },
  }

  /** The outcome of each request, in order. One statement creates all objects. */
  async function createAll(db: Db, requests: readonly ObjectWrite<Creation>[]): Promise<WriteOutcome[]> {
    const ids = requests.map(() => newId())
    const fitting: unknown[][] = []
    for (const [place, { projectId, change, author }] of requests.entries()) {
      const id = ids[place]
      const bytes = sizeOf(change.properties)
      if (id === undefined || bytes > MOST_PROPERTIES) continue
      const { type, key, properties } = change
      const shared = sharedValues(id, projectId, { key, properties }, author)
      fitting.push([...shared, type, key, ...note(id, projectId, author, change)])
      // The words of a large object take a tenth of a second.
      if (bytes > LARGE_PROPERTIES) await giveWay()
    }
    if (fitting.length === 0) return requests.map(() => TOO_LARGE)
    const columns = (fitting[0] ?? []).map((_, column) => fitting.map((values) => values[column]))
    const { rows } = await db.query<ObjectRow & { started: number }>(statements.create, columns)
    const made = new Map(rows.map((row) => [row.id, row]))
    return requests.map(({ change }, place): WriteOutcome => {
      const row = made.get(ids[place] ?? '')
      if (row) return { kind: 'written', object: toObject(row), started: row.started }
      return isTooLarge(change.properties) ? TOO_LARGE : TAKEN
    })
  }

  async function changeLocked(tx: Db, request: ObjectWrite<Alteration>): Promise<WriteOutcome> {
    const outcome = await changeKnown(tx, request, true)
    if (!outcome) throw new Error('an object changed while it was locked')
    return outcome
  }

  /** Null if the object was changed since it was read. */
  async function changeKnown(
    db: Db,
    { projectId, change, author }: ObjectWrite<Alteration>,
    isLocked: boolean,
  ): Promise<WriteOutcome | null> {
    const before = await findObject(db, projectId, change.id, { isLocked })
    if (!before || before.deleted_at !== null) return { kind: 'missing' }
    if (change.expectedVersion !== null && change.expectedVersion !== before.version) {
      return { kind: 'moved', version: before.version }
    }
    const isRemoved = change.op === 'delete'
    const properties = isRemoved ? before.properties : { ...before.properties, ...change.properties }
    if (!isRemoved && canonicalJson(properties) === canonicalJson(before.properties)) {
      return { kind: 'unchanged', object: before }
    }
    if (!isRemoved && isTooLarge(properties)) return { kind: 'too_large' }
    const known = { op: change.op, type: before.type, key: before.key, version: before.version + 1 }
    const values = [
      ...sharedValues(before.id, projectId, { key: before.key, properties }, author),
      ...note(before.id, projectId, author, known),
      before.version,
    ]
    return run(db, isRemoved ? statements.remove : statements.update, values)
  }
}

/** The limit in bytes of JSON, which is also the limit of a request. */
export const MOST_PROPERTIES = 1_048_576
export const TOO_LARGE_PROBLEM = 'The properties of an object may take 1 MiB in all.'

const LARGE_PROPERTIES = 65_536

export const isTooLarge = (properties: Record<string, unknown>): boolean => sizeOf(properties) > MOST_PROPERTIES

const sizeOf = (properties: Record<string, unknown>): number => Buffer.byteLength(JSON.stringify(properties))

const TAKEN: WriteOutcome = { kind: 'taken', id: null }
const TOO_LARGE: WriteOutcome = { kind: 'too_large' }

type Creation = Extract<ObjectChange, { op: 'create' }>
type Alteration = Exclude<ObjectChange, Creation>

const isCreation = (request: ObjectWrite): request is ObjectWrite<Creation> => request.change.op === 'create'

/** A `put` begins again when others create or delete the object between its steps. */
const MOST_ATTEMPTS = 20

async function sayingWhose(db: Db, request: ObjectWrite<Creation>, outcome: WriteOutcome): Promise<WriteOutcome> {
  const { type, key } = request.change
  if (outcome.kind !== 'taken' || key === null) return outcome
  return { kind: 'taken', id: await findByKey(db, request.projectId, type, key) }
}

async function run(db: Db, sql: { name: string; text: string }, values: unknown[]): Promise<WrittenObject | null> {
  const { rows } = await db.query<ObjectRow & { started: number }>(sql, values)
  const row = rows[0]
  return row ? { kind: 'written', object: toObject(row), started: row.started } : null
}

function sharedValues(
  id: string,
  projectId: string,
  { key, properties }: { key: string | null; properties: Record<string, unknown> },
  author: Author,
): unknown[] {
  // The text of a tsvector; no character of the words needs more than quotes.
  const words = objectWords(key, properties)
    .map((word) => `'${word}'`)
    .join(' ')
  const { type, id: authorId, runId, approvedBy, depth } = author
  return [id, projectId, JSON.stringify(properties), words, type, authorId, runId, approvedBy, depth, newId()]
}

function note(
  id: string,
  projectId: string,
  { actor, runId, approvedBy }: Author,
  change: { op: string; type: string; key: string | null; version?: number },
): unknown[] {
  const { op, type, key, version = 1 } = change
  return noteValues({
    action: `object.${op}`,
    actor,
    projectId,
    targetType: 'object',
    targetId: id,
    details: defined({
      type,
      version,
      key: key ?? undefined,
      run_id: runId ?? undefined,
      approved_by: approvedBy ?? undefined,
    }),
  })
}
