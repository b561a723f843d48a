// The processing log: one entry for each event that an agent reacts to. The statement of the change makes the entries
// (reactions.ts). A trigger of the database keeps each entry in step with its run, in the run's commit.

import { getAgent } from '../agents/agents.ts'
import { recordAudit } from '../audit/record.ts'
import { type RowOf, tellInstants } from '../db/instants.ts'
import { listPage, type PageQuery } from '../db/list-page.ts'
import type { Db } from '../db/pool.ts'
import { selectByStatus } from '../db/select-by-status.ts'
import { conflict, notFound } from '../kernel/errors.ts'
import type { Page } from '../kernel/fields.ts'
import { newId } from '../kernel/id.ts'
import { type ProcessingEntry, processingStatuses } from '../kernel/object.ts'
import type { Actor } from '../kernel/principal.ts'
import { type EarlierRun, insertContinuation, lockEarlier, newestOfChain } from '../runs/continue-run.ts'
import { requireSameKind } from '../runs/resume.ts'
import { requireEnabled } from '../runs/start.ts'
import { reactionRuns } from './reactions.ts'

const COLUMNS = `id, agent_id, graph_object_id, object_version, event_type, status, run_id, error_message, created_at,
  started_at, completed_at`
type EntryRow = RowOf<ProcessingEntry>

export async function listEntries(
  db: Db,
  agentId: string,
  { status }: { status?: ProcessingEntry['status'] | undefined },
  query: PageQuery,
): Promise<Page<ProcessingEntry>> {
  return listPage<EntryRow, ProcessingEntry>(db, {
    ...selectByStatus({
      select: `select ${COLUMNS} from processing_log`,
      by: { agent_id: agentId },
      among: { status: status === undefined ? processingStatuses : [status] },
    }),
    query,
    toItem: toEntry,
  })
}

const RETRIED = ['failed', 'abandoned', 'skipped']

/**
 * Continues the run of the entry in a new run, so that its finished calls are not made again. An entry that never had a
 * run gets its first one, on the object as it was at the event. The old run cannot change the entry any more.
 */
export async function retryEntry(
  tx: Db,
  { projectId, agentId, entryId, actor }: { projectId: string; agentId: string; entryId: string; actor: Actor },
): Promise<ProcessingEntry> {
  // A run that ends locks itself before its entry, so this does too.
  const { rows: known } = await tx.query<{ run_id: string | null }>(
    'select run_id from processing_log where id = $1 and agent_id = $2 and project_id = $3',
    [entryId, agentId, projectId],
  )
  const earlier = known[0]?.run_id ? await lockEarlier(tx, projectId, known[0].run_id) : null
  const { rows } = await tx.query<EntryRow>(
    `select ${COLUMNS} from processing_log where id = $1 and agent_id = $2 and project_id = $3 for update`,
    [entryId, agentId, projectId],
  )
  const entry = rows[0]
  if (!entry) throw notFound('entry of the processing log')
  if (!RETRIED.includes(entry.status) || entry.run_id !== (known[0]?.run_id ?? null))
    throw conflict(`Only ${RETRIED.join(', ')} entries are retried; this one is ${entry.status}.`)
  const runId = earlier ? await continueEntry(tx, entry, earlier) : await startAgain(tx, entryId)
  const { rows: retried } = await tx.query<EntryRow>(
    `update processing_log set status = 'pending', run_id = $2, error_message = null, started_at = null,
       completed_at = null, working_since = null
     where id = $1 returning ${COLUMNS}`,
    [entryId, runId],
  )
  await recordAudit(tx, {
    action: 'processing.retry',
    actor,
    projectId,
    targetType: 'processing_entry',
    targetId: entryId,
    details: { run_id: runId, was: entry.status },
  })
  return toEntry(retried[0] ?? entry)
}

async function continueEntry(tx: Db, entry: EntryRow, earlier: EarlierRun): Promise<string> {
  if (earlier.completed_at === null || earlier.has_open_children)
    throw conflict('The run of this entry has not ended yet. Try again in a moment.')
  if (earlier.continued_by !== null) {
    const newest = await newestOfChain(tx, earlier.continued_by)
    throw conflict('The run of this entry was resumed already.', { run_id: newest })
  }
  const agent = await getAgent(tx, earlier.project_id, entry.agent_id)
  requireEnabled(agent)
  await requireSameKind(tx, agent, earlier)
  return insertContinuation(tx, earlier, {
    trigger: { type: 'reaction', entry_id: entry.id, resumed_by: 'person' },
    input: null,
    maxSteps: agent.max_steps,
    timeoutMs: agent.default_timeout,
  })
}

async function startAgain(tx: Db, entryId: string): Promise<string> {
  const runId = newId()
  const { rowCount } = await tx.query(START_AGAIN, [entryId, runId])
  if (!rowCount) throw conflict('The agent is disabled. Enable it first.')
  return runId
}

const START_AGAIN = `
  with change as (
    select o.id, o.type, o.key, v.properties, v.version, v.actor_type, v.actor_id, l.event_type as event
    from processing_log l join objects o on o.id = l.graph_object_id
    join object_versions v on v.object_id = o.id and v.version = l.object_version
    where l.id = $1
  )
  ${reactionRuns(
    { runId: '$2::uuid', depth: 'e.depth' },
    `from processing_log e join agents a on a.id = e.agent_id and a.enabled and a.deleted_at is null cross join change c
     where e.id = $1`,
  )}`

const toEntry = (row: EntryRow): ProcessingEntry => tellInstants(row)
