import type { Db } from '../db/pool.ts'
import { type Creator, MAX_TITLE, type SuggestedChange } from '../kernel/task.ts'

export interface NewSuggestion {
  /** Made by the caller, so that suggesting again after a crash suggests once. */
  taskId: string
  projectId: string
  agentId: string
  runId: string
  change: SuggestedChange
  reasoning: string
  /** The depth of the run's changes; the approved change will have it too. */
  depth: number
}

/** Puts a change before people, within the transaction that journals it. */
export async function suggest(tx: Db, suggestion: NewSuggestion): Promise<string> {
  const { taskId, projectId, agentId, runId, change, reasoning, depth } = suggestion
  const creator: Creator = { type: 'agent', id: agentId }
  await tx.query(
    `insert into tasks (id, project_id, kind, title, description, created_by, changes, reasoning, run_id, chain_depth)
     values ($1, $2, 'suggestion', $3, $4, $5, $6, $4, $7, $8) on conflict (id) do nothing`,
    [taskId, projectId, titleOf(change), reasoning, JSON.stringify(creator), JSON.stringify([change]), runId, depth],
  )
  return taskId
}

const VERBS = { create: 'Create', update: 'Update', delete: 'Delete', relate: 'Relate' } as const

function titleOf({ op, object_type, key, before, after }: SuggestedChange): string {
  if (op === 'relate') return cut(`Relate ${object_type}: ${String(after?.type)}`)
  const name = key ?? nameIn(after) ?? nameIn(before)
  return cut(`${VERBS[op]} ${object_type}${name === null ? '' : ` ${name}`}`)
}

/** The property by which people call an object. */
function nameIn(properties: Record<string, unknown> | null): string | null {
  const name = properties?.name ?? properties?.title
  return typeof name === 'string' && name.trim() !== '' ? name : null
}

const cut = (title: string): string =>
  title.length <= MAX_TITLE ? title : `${title.slice(0, MAX_TITLE - 1)}…`.toWellFormed()
