// Starts of runs of an agent. A run is accepted when the statement commits, and from then on it is never lost.
import { getAgent } from '../agents/agents.ts'
import { type AuditNote, NOTE_COLUMNS, NOTE_TYPES, noteLists } from '../audit/record.ts'
import type { Db, PreparedSql } from '../db/pool.ts'
import { insertRunsSql } from '../journal/insert-run.ts'
import { plainArray } from '../journal/plain-array.ts'
import { READY_CHANNEL } from '../journal/wake.ts'
import type { Agent } from '../kernel/agent.ts'
import { conflict } from '../kernel/errors.ts'
import { newId } from '../kernel/id.ts'
import type { Run, TriggerType } from '../kernel/run.ts'
import { RUN_COLUMNS, type RunRow, toRun } from './run-row.ts'

export interface StartOptions {
  input: unknown
  trigger: Readonly<Record<string, unknown>> & { type: TriggerType }
  timeoutMs?: number | undefined
  maxSteps?: number | undefined
  priority?: number
  /** The audit entry that names the person or agent who asked for the run. */
  note?: ((runId: string) => AuditNote) | undefined
}

export interface Start extends StartOptions {
  id: string
  projectId: string
  agentId: string
}

/** Inserts the run; the caller tells the workers after its commit. A disabled agent starts nothing. */
export async function startRun(db: Db, projectId: string, agentId: string, options: StartOptions): Promise<Run> {
  const start = { ...options, id: newId(), projectId, agentId }
  const run = (await insertStarts(db, [start])).get(start.id)
  return run ?? explain(db, start)
}

/** Throws an error with the reason why no run was inserted. */
export async function explain(db: Db, { projectId, agentId }: Start): Promise<never> {
  requireEnabled(await getAgent(db, projectId, agentId))
  throw conflict('The agent was changed while the run was being started. Try again.')
}

export function requireEnabled(agent: Agent): void {
  if (!agent.enabled) throw conflict(`The agent ${agent.name} is disabled. Enable it first.`)
}

const NOTE_PLACES = NOTE_TYPES.map((type, index) => `$${index + 10}::${type}[]`).join(', ')
const NOTED = `, noted as (
      insert into audit_log (${NOTE_COLUMNS})
      select n.* from unnest(${NOTE_PLACES}) as n (${NOTE_COLUMNS}) where n.target_id in (select id::text from made)
    )`

const startSql = (name: string, noted: string): PreparedSql => ({
  name,
  text: `
    with made as (
      ${insertRunsSql(
        {
          id: 's.id',
          project_id: 's.project_id',
          agent_id: 'a.id',
          trigger: 's.trigger',
          input: 's.input',
          max_steps: 'coalesce(s.max_steps, a.max_steps)',
          timeout: 'coalesce(s.timeout, a.default_timeout)',
          priority: 's.priority',
        },
        `from unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::jsonb[], $5::jsonb[], $6::int[], $7::int[], $8::smallint[])
          as s (id, project_id, agent_id, trigger, input, max_steps, timeout, priority)
        join agents a on a.id = s.agent_id and a.project_id = s.project_id and a.deleted_at is null and a.enabled`,
      )}
      returning ${RUN_COLUMNS}
    )${noted}
    select made.*, case when $9 then pg_notify('${READY_CHANNEL}', '') end from made`,
})
/** A start that nobody asked for, such as a schedule's, has no note. */
const START = startSql('run_start', '')
const START_NOTED = startSql('run_start_noted', NOTED)

/**
 * Inserts all runs with one statement. Runs of an unknown or disabled agent are absent from the result. With
 * `isAnnounced` the commit notifies the processes that work on runs.
 */
export async function insertStarts(db: Db, starts: readonly Start[], isAnnounced = false): Promise<Map<string, Run>> {
  const notes = starts.flatMap((start) => (start.note ? [start.note(start.id)] : []))
  const isNoted = notes.length > 0
  const { rows } = await db.query<RunRow & { case: unknown }>(isNoted ? START_NOTED : START, [
    plainArray(starts, (start) => start.id),
    starts.map((start) => start.projectId),
    starts.map((start) => start.agentId),
    starts.map((start) => JSON.stringify(start.trigger)),
    starts.map((start) => JSON.stringify(start.input)),
    plainArray(starts, (start) => start.maxSteps ?? null),
    plainArray(starts, (start) => start.timeoutMs ?? null),
    plainArray(starts, (start) => start.priority ?? 0),
    isAnnounced,
    ...(isNoted ? noteLists(notes) : []),
  ])
  return new Map(rows.map(({ case: _, ...row }) => [row.id, toRun(row)]))
}
