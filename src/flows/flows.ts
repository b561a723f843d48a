// Stored flows: a name and a tree. The names in a tree are checked when it is written, and again at each start.
import { z } from 'zod'
import { changeAudited, recordAudit } from '../audit/record.ts'
import { isUniqueViolation } from '../db/failures.ts'
import { listPage, type PageQuery } from '../db/list-page.ts'
import type { Db, Pool } from '../db/pool.ts'
import { inTransaction } from '../db/transaction.ts'
import { conflict, invalidRequest, notFound } from '../kernel/errors.ts'
import { idField, instantField, nameField, type Page } from '../kernel/fields.ts'
import type { FlowNode } from '../kernel/flow.ts'
import { newId } from '../kernel/id.ts'
import type { Actor } from '../kernel/principal.ts'
import { knownNames } from './known-names.ts'
import { type CheckedFlow, validateFlow } from './validate.ts'

/** A tree of nodes. validateFlow checks it node by node. */
export const rootField = z
  .unknown()
  .refine((root) => root !== undefined, 'is required')
  .describe('The tree: {type: "task"|"sequential"|"parallel"|…, …}.')

export const flowInput = z.strictObject({ name: nameField, root: rootField })
export type FlowInput = z.infer<typeof flowInput>

export const flowPatch = z.strictObject({ name: nameField.optional(), root: z.unknown().optional() })
export type FlowPatch = z.infer<typeof flowPatch>

export const flowSchema = z.strictObject({
  id: idField,
  project_id: idField,
  name: z.string(),
  root: z.unknown(),
  created_at: instantField,
  updated_at: instantField,
})
export type Flow = z.infer<typeof flowSchema>

export interface FlowWrite {
  actor: Actor
  functions: { has(name: string): boolean }
}

interface FlowRow extends Omit<Flow, 'created_at' | 'updated_at'> {
  created_at: Date
  updated_at: Date
}

const COLUMNS = 'id, project_id, name, root, created_at, updated_at'

export async function createFlow(
  db: Db,
  projectId: string,
  { name, root }: FlowInput,
  { actor, functions }: FlowWrite,
): Promise<Flow> {
  await requireFlow(db, projectId, root, functions)
  const id = newId()
  const rows = await sayingNameTaken(name, () =>
    changeAudited<FlowRow>(db, {
      sql: `insert into flows (id, project_id, name, root) values ($1, $2, $3, $4) returning ${COLUMNS}`,
      values: [id, projectId, name, JSON.stringify(root)],
      note: note('flow.create', actor, projectId, id, { name }),
    }),
  )
  return onlyFlow(rows)
}

export async function listFlows(db: Db, projectId: string, query: PageQuery): Promise<Page<Flow>> {
  return listPage<FlowRow, Flow>(db, {
    sql: `select ${COLUMNS} from flows where project_id = $1`,
    values: [projectId],
    query,
    toItem: toFlow,
  })
}

export async function getFlow(db: Db, projectId: string, flowId: string): Promise<Flow> {
  const { rows } = await db.query<FlowRow>(`select ${COLUMNS} from flows where id = $1 and project_id = $2`, [
    flowId,
    projectId,
  ])
  return onlyFlow(rows)
}

/** Runs that were started go on with the tree they were started with. */
export async function updateFlow(
  pool: Pool,
  projectId: string,
  flowId: string,
  patch: FlowPatch,
  { actor, functions }: FlowWrite,
): Promise<Flow> {
  return inTransaction(pool, async (tx) => {
    const { rows: before } = await tx.query<FlowRow>(
      `select ${COLUMNS} from flows where id = $1 and project_id = $2 for update`,
      [flowId, projectId],
    )
    const flow = onlyFlow(before)
    const changed = Object.keys(patch)
    if (changed.length === 0) return flow
    const { name = flow.name, root = flow.root } = patch
    if (patch.root !== undefined) await requireFlow(tx, projectId, root, functions)
    const { rows } = await sayingNameTaken(name, () =>
      tx.query<FlowRow>(
        `update flows set name = $2, root = $3, updated_at = muster.now() where id = $1 returning ${COLUMNS}`,
        [flowId, name, JSON.stringify(root)],
      ),
    )
    await recordAudit(tx, note('flow.update', actor, projectId, flowId, { changed }))
    return onlyFlow(rows)
  })
}

/** The runs of the flow stay. */
export async function deleteFlow(db: Db, projectId: string, flowId: string, actor: Actor): Promise<void> {
  const rows = await changeAudited<FlowRow>(db, {
    sql: `delete from flows where id = $1 and project_id = $2 returning ${COLUMNS}`,
    values: [flowId, projectId],
    note: note('flow.delete', actor, projectId, flowId, {}),
  })
  onlyFlow(rows)
}

export async function checkFlow(
  db: Db,
  projectId: string,
  root: unknown,
  functions: FlowWrite['functions'],
): Promise<CheckedFlow> {
  return validateFlow(root, await knownNames(db, projectId, root, functions))
}

/** The tree with its defaults filled in, or a refusal that names the first node and lists every problem. */
export async function requireFlow(
  db: Db,
  projectId: string,
  root: unknown,
  functions: FlowWrite['functions'],
): Promise<FlowNode> {
  const checked = await checkFlow(db, projectId, root, functions)
  if (checked.isValid) return checked.root
  const [first] = checked.problems
  throw invalidRequest(`${first?.path ?? 'root'}: ${first?.message ?? 'is not valid'}.`, { errors: checked.problems })
}

async function sayingNameTaken<Result>(name: string, write: () => Promise<Result>): Promise<Result> {
  try {
    return await write()
  } catch (error) {
    if (isUniqueViolation(error, 'flows_name')) throw conflict(`There is a flow called ${name} already.`)
    throw error
  }
}

function note(action: string, actor: Actor, projectId: string, flowId: string, details: Record<string, unknown>) {
  return { action, actor, projectId, targetType: 'flow', targetId: flowId, details }
}

function onlyFlow(rows: FlowRow[]): Flow {
  const row = rows[0]
  if (!row) throw notFound('flow')
  return toFlow(row)
}

const toFlow = ({ created_at, updated_at, ...row }: FlowRow): Flow => ({
  ...row,
  created_at: created_at.toISOString(),
  updated_at: updated_at.toISOString(),
})
