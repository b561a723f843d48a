// Resume of a flow run: a new flow run over the same tree and input, which takes over every finished leaf, item,
// partition and piece of the one before. Agent leaves that had not finished continue their runs.
import type { Db } from '../../db/pool.ts'
import { conflict, runNotFound } from '../../kernel/errors.ts'
import type { FlowNode } from '../../kernel/flow.ts'
import type { FlowRunStatus } from '../../kernel/flow-run.ts'
import { isId } from '../../kernel/id.ts'
import { flowScope } from './leaf-scope.ts'
import type { NewFlowRun } from './start.ts'

interface EndedFlow {
  id: string
  flow_id: string | null
  root: FlowNode
  input: unknown
  timeout: number
  workers: number | null
  status: FlowRunStatus
  completed_at: Date | null
  key_scope: string | null
  parent_run_id: string | null
}

const RESUMABLE: ReadonlySet<FlowRunStatus> = new Set(['failed', 'cancelled', 'timed_out', 'partial'])

/** Locks the flow run, so that it is resumed once. Throws if it is unknown, not resumable, or resumed already. */
export async function flowToResume(
  tx: Db,
  projectId: string,
  flowRunId: string,
  { timeoutMs }: { timeoutMs?: number | undefined } = {},
): Promise<NewFlowRun> {
  const ended = await lockEnded(tx, projectId, flowRunId)
  if (!ended) throw runNotFound()
  if (ended.parent_run_id !== null) {
    throw conflict('This flow run belongs to the run of an agent. Resume that run.', { run_id: ended.parent_run_id })
  }
  return resumed(tx, projectId, ended, timeoutMs ?? ended.timeout)
}

/**
 * The flow run that continues that of an earlier run. It continues a completed one, too: the earlier run may have been
 * cancelled before it ended with it. open: the flow run has not ended yet.
 */
export async function flowOfRunToResume(
  tx: Db,
  projectId: string,
  flowRunId: string,
): Promise<Pick<NewFlowRun, 'flowId' | 'root' | 'input' | 'resumedFrom' | 'keyScope'> | 'open' | 'gone'> {
  const ended = await lockEnded(tx, projectId, flowRunId)
  if (!ended) return 'gone'
  if (ended.completed_at === null) return 'open'
  const { flow_id: flowId, root, input, id: resumedFrom } = ended
  return { flowId, root, input, resumedFrom, keyScope: flowScope(ended) }
}

async function lockEnded(tx: Db, projectId: string, flowRunId: string): Promise<EndedFlow | null> {
  if (!isId(flowRunId)) return null
  const { rows } = await tx.query<EndedFlow>(
    `select id, flow_id, root, input, timeout, workers, status, completed_at, key_scope, parent_run_id from flow_runs
     where id = $1 and project_id = $2 for update`,
    [flowRunId, projectId],
  )
  return rows[0] ?? null
}

async function resumed(tx: Db, projectId: string, ended: EndedFlow, timeoutMs: number): Promise<NewFlowRun> {
  if (!RESUMABLE.has(ended.status)) {
    throw conflict(
      `Only a flow run that failed, was cancelled, timed out or is partial is resumed; this one is ${ended.status}.`,
    )
  }
  const newest = await newestResumption(tx, ended.id)
  if (newest !== null) throw conflict('This flow run was resumed already.', { flow_run_id: newest, run_id: newest })
  return {
    projectId,
    flowId: ended.flow_id,
    root: ended.root,
    input: ended.input,
    timeoutMs,
    workers: ended.workers,
    resumedFrom: ended.id,
    keyScope: flowScope(ended),
  }
}

/** The newest flow run of the chain; null if the flow run was not resumed. */
async function newestResumption(tx: Db, flowRunId: string): Promise<string | null> {
  const { rows } = await tx.query<{ id: string }>(
    `with recursive later (id, depth) as (
       select id, 1 from flow_runs where resumed_from = $1
       union all select f.id, depth + 1 from later l join flow_runs f on f.resumed_from = l.id
     ) select id from later order by depth desc limit 1`,
    [flowRunId],
  )
  return rows[0]?.id ?? null
}
