// Evals: the same cases run on several variants of a project's supervisor system, and the outcomes compared. An eval is
// a row with its cases and one result for each case and variant. A worker (worker.ts) starts runs for results and
// judges the ended ones (advance.ts); the figures are computed when somebody reads the eval (read-evals.ts,
// statistics.ts).
import { changeAudited } from '../audit/record.ts'
import type { Db } from '../db/pool.ts'
import { EVAL_CHANNEL, tellProcesses } from '../journal/wake.ts'
import { conflict, invalidRequest } from '../kernel/errors.ts'
import type { EvalInput, Expectation, ListedEval } from '../kernel/eval.ts'
import { newId } from '../kernel/id.ts'
import type { Actor } from '../kernel/principal.ts'
import { asConfigured, findSystem, unknownVariant } from '../supervisor/systems.ts'
import { EVAL_COLUMNS, type EvalRow, type StoredSystem, toListed } from './eval-row.ts'
import { readRecorded } from './recorded-case.ts'

/** The most characters of tasks and metadata. The limit of a request's body does not cover recorded runs. */
const MOST_CHARACTERS = 4_194_304

interface NewCase {
  task: string
  metadata: Record<string, unknown>
  expect: Expectation
  recordedRunId: string | null
}

/** Creates the eval within a transaction, whole or not at all. The commit notifies the processes that run evals. */
export async function createEval(tx: Db, projectId: string, input: EvalInput, actor: Actor): Promise<ListedEval> {
  const systems: StoredSystem[] = []
  for (const name of input.variants) {
    const system = await findSystem(tx, projectId, name)
    if (!system) throw invalidRequest(`variants: ${await unknownVariant(tx, projectId, name)}`)
    systems.push(asConfigured(system))
  }
  await requireRoom(tx, projectId)
  const cases = await casesOf(tx, projectId, input)
  const id = newId()
  const [row] = await changeAudited<EvalRow>(tx, {
    sql: `insert into evals (id, project_id, name, variants, systems, total) values ($1, $2, $3, $4, $5, $6)
          returning ${EVAL_COLUMNS}`,
    values: [id, projectId, input.name, input.variants, JSON.stringify(systems), cases.length * systems.length],
    note: {
      action: 'eval.create',
      actor,
      projectId,
      targetType: 'eval',
      targetId: id,
      details: { name: input.name, cases: cases.length, variants: input.variants },
    },
  })
  if (!row) throw new Error('an eval was not inserted')
  await insertCases(tx, id, cases, systems.length)
  await tellProcesses(tx, EVAL_CHANNEL, projectId)
  return toListed(row)
}

/** The number of open evals is limited, because open evals are read again and again. */
const MOST_OPEN = 100

async function requireRoom(tx: Db, projectId: string): Promise<void> {
  const { rowCount } = await tx.query('select from evals where project_id = $1 and is_open limit $2', [
    projectId,
    MOST_OPEN,
  ])
  if (rowCount === MOST_OPEN) throw conflict(`${MOST_OPEN} evals of this project are open; cancel one, or wait.`)
}

async function casesOf(tx: Db, projectId: string, { cases }: EvalInput): Promise<NewCase[]> {
  const runIds = cases.flatMap((each) => ('run_id' in each ? [each.run_id] : []))
  const recorded = await readRecorded(tx, projectId, runIds)
  const made = cases.map((each, index): NewCase => {
    if (!('run_id' in each)) return { ...each, metadata: {}, recordedRunId: null }
    const found = recorded.get(each.run_id)
    if (!found) throw invalidRequest(`cases[${index}].run_id: the project has no such run of the supervisor.`)
    if ('problem' in found) throw invalidRequest(`cases[${index}].run_id: ${found.problem}; nothing can be expected.`)
    return { ...found, recordedRunId: each.run_id }
  })
  const size = made.reduce((sum, { task, metadata }) => sum + task.length + JSON.stringify(metadata).length, 0)
  if (size <= MOST_CHARACTERS) return made
  throw invalidRequest(`The tasks and contexts of the recorded runs have more than ${MOST_CHARACTERS} characters.`)
}

async function insertCases(tx: Db, evalId: string, cases: readonly NewCase[], variants: number): Promise<void> {
  await tx.query(
    `insert into eval_cases (eval_id, place, task, metadata, expect, recorded_run_id)
     select $1, c.place - 1, c.task, c.metadata, c.expect, c.recorded_run_id
     from unnest($2::text[], $3::jsonb[], $4::jsonb[], $5::uuid[])
       with ordinality as c (task, metadata, expect, recorded_run_id, place)`,
    [
      evalId,
      cases.map(({ task }) => task),
      cases.map(({ metadata }) => JSON.stringify(metadata)),
      cases.map(({ expect }) => JSON.stringify(expect)),
      cases.map(({ recordedRunId }) => recordedRunId),
    ],
  )
  await tx.query(
    `insert into eval_results (eval_id, place, variant)
     select $1, place, variant from generate_series(0, $2::int - 1) place, generate_series(0, $3::int - 1) variant`,
    [evalId, cases.length, variants],
  )
}
