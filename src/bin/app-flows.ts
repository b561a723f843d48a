import type { Pool } from '../db/pool.ts'
import { createFlow, type FlowWrite } from '../flows/flows.ts'
import type { FlowProblem } from '../flows/validate.ts'
import { oldestProject } from '../identity/projects.ts'
import type { AppFlowDefinition } from '../kernel/app.ts'
import { MusterError } from '../kernel/errors.ts'
import type { Log } from '../kernel/log.ts'
import { systemActor } from '../kernel/principal.ts'

const MOST_PROBLEMS = 5

/**
 * The flows of an app module are made in the oldest project, once, after its agents: later changes by people stay. A
 * flow that cannot run is refused with its name and its faulty nodes, and the server does not start.
 */
export async function createAppFlows(
  pool: Pool,
  flows: readonly AppFlowDefinition[],
  functions: FlowWrite['functions'],
  log: Log,
): Promise<void> {
  if (flows.length === 0) return
  const projectId = await oldestProject(pool)
  if (projectId === null) {
    log.warn({}, 'the app module has flows, but there is no project yet; they are made at the next start')
    return
  }
  for (const flow of flows) {
    const { rowCount: isThere } = await pool.query('select from flows where project_id = $1 and name = $2', [
      projectId,
      flow.name,
    ])
    if (isThere) continue
    try {
      await createFlow(pool, projectId, flow, { actor: systemActor, functions })
    } catch (error) {
      // Another process that starts at the same time has made the flow.
      if (error instanceof MusterError && error.code === 'CONFLICT') continue
      throw refused(flow.name, error)
    }
    log.info({ flow: flow.name, project_id: projectId }, 'a flow of the app module was created')
  }
}

function refused(name: string, error: unknown): unknown {
  if (!(error instanceof MusterError) || error.code !== 'INVALID_REQUEST') return error
  const problems = (error.details?.errors ?? []) as readonly FlowProblem[] // as requireFlow says
  const said = problems.slice(0, MOST_PROBLEMS).map(({ path, message }) => `${path}: ${message}`)
  const rest = problems.length > MOST_PROBLEMS ? `; and ${problems.length - MOST_PROBLEMS} more` : ''
  return new Error(`The flow "${name}" of the app module cannot run: ${said.join('; ') || error.message}${rest}.`, {
    cause: error,
  })
}
