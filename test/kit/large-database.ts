// A database of its own that looks as after years: see large-tables.ts. Each test adds its own open work.
import type { Pool } from '../../src/db/pool.ts'
import { createTestDatabase, type TestDatabase } from './database.ts'
import { fillLargeTables } from './large-tables.ts'

export interface LargeTables {
  projects: string[]
  /** One agent of each project, in the order of the projects. */
  agents: string[]
  /** Runs that have sub-runs, one of each project. */
  parents: string[]
  /** Flow runs that have agent leaves, one of each project. */
  flowRuns: string[]
}

export async function createLargeDatabase(): Promise<TestDatabase & { large: LargeTables }> {
  const database = await createTestDatabase({ content: { name: 'large', fill: (url) => fillLargeTables(url) } })
  return { ...database, large: await readLarge(database.pool) }
}

async function readLarge(pool: Pool): Promise<LargeTables> {
  const { rows: made } = await pool.query<{ project: string; agent: string }>(
    'select p.id as project, a.id as agent from projects p join agents a on a.project_id = p.id order by p.name',
  )
  const { rows: parents } = await pool.query<{ id: string }>(
    'select distinct on (project_id) parent_run_id as id from agent_runs where parent_run_id is not null order by project_id',
  )
  const { rows: flowRuns } = await pool.query<{ id: string }>(
    'select distinct on (project_id) flow_run_id as id from agent_runs where flow_run_id is not null order by project_id',
  )
  const [projects, agents] = [made.map((row) => row.project), made.map((row) => row.agent)]
  return { projects, agents, parents: parents.map((row) => row.id), flowRuns: flowRuns.map((row) => row.id) }
}
