// The processing log: one entry for each event that an agent reacts to. The statement of the change makes the entries
// (reactions.ts). A trigger of the database keeps each entry in step with its run, in the run's commit.

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

/** Starts a new run for the entry, on the object as it was at the event. The abandoned run cannot change the entry. */
export async function retryEntry(
  tx: Db,
  { projectId, agentId, entryId, actor }: { projectId: string; agentId: string; entryId: string; actor: Actor },
): Promise<ProcessingEntry> {
  const { rows } = await tx.query<EntryRow>(
    `select ${COLUMNS} from processing_log where id = $1 and agent_id = $2 and project_id = $3 for update`,
    [entryId, agentId, projectId],
  )
  const entry = rows[0]
  if (!entry) throw notFound('entry of the processing log')
  if (!RETRIED.includes(entry.status))
    throw conflict(`Only ${RETRIED.join(', ')} entries are retried; this one is ${entry.status}.`)
  const runId = newId()
  const { rowCount } = await tx.query(START_AGAIN, [entryId, runId])
  if (!rowCount) throw conflict('The agent is disabled. Enable it first.')
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
