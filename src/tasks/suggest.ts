import type { Db } from '../db/pool.ts'
import { cutText } from '../kernel/cut-text.ts'
import { type Creator, changeVerbs, MAX_TITLE, type SuggestedChange } from '../kernel/task.ts'

export interface NewSuggestion {
  /** The caller chooses the id, so that a suggestion repeated after a crash is made once. */
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

function titleOf({ op, object_type, key, before, after }: SuggestedChange): string {
  if (op === 'relate') return cutText(`Relate ${object_type}: ${String(after?.type)}`, MAX_TITLE, '…')
  const name = key ?? nameIn(after) ?? nameIn(before)
  return cutText(`${changeVerbs[op]} ${object_type}${name === null ? '' : ` ${name}`}`, MAX_TITLE, '…')
}

/** The property that people use as an object's name. */
function nameIn(properties: Record<string, unknown> | null): string | null {
  const name = properties?.name ?? properties?.title
  return typeof name === 'string' && name.trim() !== '' ? name : null
}
