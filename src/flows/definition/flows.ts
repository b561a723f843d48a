// Stored flows: a name and a tree. The names in a tree are checked when it is written, and again at each start.

import { z } from 'zod'
import { changeAudited, recordAudit } from '../../audit/record.ts'
import { isUniqueViolation } from '../../db/failures.ts'
import { type RowOf, tellInstants } from '../../db/instants.ts'
import { listPage, type PageQuery } from '../../db/list-page.ts'
import type { Db, Pool } from '../../db/pool.ts'
import { isInCode, SOURCE_COLUMN } from '../../db/source-column.ts'
import { inTransaction } from '../../db/transaction.ts'
import { conflict, invalidRequest, notFound } from '../../kernel/errors.ts'
import type { Problem } from '../../kernel/explain-issue.ts'
import { idField, instantField, nameField, type Page } from '../../kernel/fields.ts'
import { type FlowNode, innerField } from '../../kernel/flow.ts'
import { newId } from '../../kernel/id.ts'
import type { Actor } from '../../kernel/principal.ts'
import { sentenceAt } from '../../kernel/sentence-at.ts'
import { requireDeletable, requireOpenToRequests, sourceField } from '../../kernel/source.ts'
import { type Checking, knownNames } from './known-names.ts'
import { type CheckedFlow, validateFlow } from './validate.ts'

/** A tree of nodes. validateFlow checks it node by node. */
const rootField = innerField.refine((root) => root !== undefined, 'is missing')

const enabledField = z.boolean().describe('False: no run of the flow can be started.')

export const flowRoot = z.strictObject({ root: rootField })
export const flowInput = z.strictObject({ name: nameField, root: rootField, enabled: enabledField.optional() })
export type FlowInput = z.infer<typeof flowInput>

export const flowPatch = z.strictObject({
  name: nameField.optional(),
  root: innerField.optional(),
  enabled: enabledField.optional(),
})
export type FlowPatch = z.infer<typeof flowPatch>

export const flowSchema = z.strictObject({
  id: idField,
  project_id: idField,
  source: sourceField,
  name: z.string(),
  root: innerField,
  enabled: z.boolean(),
  created_at: instantField,
  updated_at: instantField,
})
export type Flow = z.infer<typeof flowSchema>

export interface FlowWrite extends Checking {
  actor: Actor
}

type FlowRow = RowOf<Flow>

const COLUMNS = `id, project_id, ${SOURCE_COLUMN}, name, root, enabled, created_at, updated_at`

export async function createFlow(
  db: Db,
  projectId: string,
  { name, root, enabled = true }: FlowInput,
  { actor, ...checking }: FlowWrite,
): Promise<Flow> {
  await requireFlow(db, projectId, root, checking)
  const id = newId()
  const rows = await sayingNameTaken(name, () =>
    changeAudited<FlowRow>(db, {
      sql: `insert into flows (id, project_id, name, root, enabled)
            values ($1, $2, $3, $4, $5) returning ${COLUMNS}`,
      values: [id, projectId, name, JSON.stringify(root), enabled],
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

export async function getEnabledFlow(db: Db, projectId: string, flowId: string): Promise<Flow> {
  const flow = await getFlow(db, projectId, flowId)
  if (!flow.enabled) throw conflict(`The flow ${flow.name} is disabled. Enable it first.`)
  return flow
}

/** Runs that were started before go on with the tree they were started with. */
export async function updateFlow(
  pool: Pool,
  projectId: string,
  flowId: string,
  patch: FlowPatch,
  write: FlowWrite,
): Promise<Flow> {
  return inTransaction(pool, async (tx) => {
    const flow = await lockFlow(tx, projectId, flowId)
    await requireOpenToRequests('flow', flow, Object.keys(patch), () => isInCode(tx, 'flows', flowId))
    return changeFlow(tx, flow, patch, write)
  })
}

/** The caller holds the row of the flow. */
export async function changeFlow(
  tx: Db,
  flow: Flow,
  patch: FlowPatch,
  { actor, ...checking }: FlowWrite,
): Promise<Flow> {
  const changed = Object.keys(patch)
  if (changed.length === 0) return flow
  const { name = flow.name, root = flow.root, enabled = flow.enabled } = patch
  if (patch.root !== undefined) await requireFlow(tx, flow.project_id, root, checking)
  if (name !== flow.name) await requireUnused(tx, flow.project_id, { name: flow.name, id: null }, 'renamed')
  const { rows } = await sayingNameTaken(name, () =>
    tx.query<FlowRow>(
      `update flows set name = $2, root = $3, enabled = $4, updated_at = muster.now() where id = $1 returning ${COLUMNS}`,
      [flow.id, name, JSON.stringify(root), enabled],
    ),
  )
  await recordAudit(tx, note('flow.update', actor, flow.project_id, flow.id, { changed }))
  return onlyFlow(rows)
}

export async function lockFlow(tx: Db, projectId: string, flowId: string): Promise<Flow> {
  const { rows } = await tx.query<FlowRow>(
    `select ${COLUMNS} from flows where id = $1 and project_id = $2 for update`,
    [flowId, projectId],
  )
  return onlyFlow(rows)
}

/** The runs of the flow stay. */
export async function deleteFlow(pool: Pool, projectId: string, flowId: string, actor: Actor): Promise<void> {
  await inTransaction(pool, async (tx) => {
    const flow = await lockFlow(tx, projectId, flowId)
    await requireUnused(tx, projectId, { name: flow.name, id: flowId }, 'deleted')
    requireDeletable('flow', flow, await isInCode(tx, 'flows', flowId))
    await changeAudited<FlowRow>(tx, {
      sql: `delete from flows where id = $1 returning ${COLUMNS}`,
      values: [flowId],
      note: note('flow.delete', actor, projectId, flowId, { name: flow.name }),
    })
  })
}

/** An agent that names the flow holds its row while the agent is written (find-flow.ts). */
async function requireUnused(
  tx: Db,
  projectId: string,
  { name, id }: { name: string; id: string | null },
  verb: string,
): Promise<void> {
  const { rows } = await tx.query<{ name: string }>(
    `select name from agents where project_id = $1 and deleted_at is null and flow is not null
       and (lower(flow) = $3 or (flow = $2 and not exists (
         select from flows f where f.project_id = $1 and f.id::text = lower(flow) and f.name <> $2))) limit 1`,
    [projectId, name, id],
  )
  if (rows[0]) throw conflict(`The agent ${rows[0].name} is this flow: it cannot be ${verb} meanwhile.`)
}

export async function checkFlow(db: Db, projectId: string, root: unknown, checking: Checking): Promise<CheckedFlow> {
  return validateFlow(root, await knownNames(db, projectId, root, checking), checking.patterns)
}

/** The tree with its defaults filled in, or a refusal that names the first node and lists every problem. */
export async function requireFlow(db: Db, projectId: string, root: unknown, checking: Checking): Promise<FlowNode> {
  const checked = await checkFlow(db, projectId, root, checking)
  if (checked.isValid) return checked.root
  throw invalidRequest(firstOf(checked.problems), { errors: checked.problems })
}

/** The first problem. If it is a field of a node, the problem of the node follows: the field may be there misspelt. */
function firstOf(problems: readonly Problem[]): string {
  const [first = { path: 'root', message: 'is not valid' }] = problems
  const node = first.path.replace(/\.[^.]*$/, '')
  const its = problems.find((problem) => problem.path === node)
  return [first, ...(its && its !== first ? [its] : [])].map(({ path, message }) => sentenceAt(path, message)).join(' ')
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

const toFlow = (row: FlowRow): Flow => tellInstants(row)
