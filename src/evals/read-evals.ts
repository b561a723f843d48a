import { LARGE_PAGE, listPage, type PageQuery } from '../db/list-page.ts'
import type { Db } from '../db/pool.ts'
import { notFound } from '../kernel/errors.ts'
import type { CaseResult, CaseStatus, Comparison, Eval, Expectation, ListedEval } from '../kernel/eval.ts'
import type { Page } from '../kernel/fields.ts'
import { isId } from '../kernel/id.ts'
import { EVAL_COLUMNS, type EvalRow, toListed } from './eval-row.ts'
import { correctnessOf } from './judge.ts'
import { compare, type MeasuredOutcome, summarize } from './statistics.ts'

export const listEvals = (db: Db, projectId: string, query: PageQuery): Promise<Page<ListedEval>> =>
  listPage<EvalRow, ListedEval>(db, {
    sql: `select ${EVAL_COLUMNS} from evals where project_id = $1`,
    values: [projectId],
    query,
    toItem: toListed,
  })

interface ResultRow {
  place: number
  variant: number
  task: string
  expect: Expectation
  run_id: string | null
  has_ended: boolean
  passed: boolean | null
  status: CaseStatus | null
  route: string[] | null
  output: string | null
  reason: string | null
  latency: number | null
  tokens: number | null
}

/** At least this many characters of each text are shown, however many texts there are. */
const SHORTEST_CUT = 200

/** The eval with all its results. The texts are cut so that all of them together stay within a limit. */
export async function getEval(db: Db, projectId: string, evalId: string): Promise<Eval> {
  const listed = await getListed(db, projectId, evalId)
  const { total } = listed.progress
  const mostCharacters = Math.max(SHORTEST_CUT, Math.floor(LARGE_PAGE / (2 * total)))
  const { rows } = await db.query<ResultRow>(
    `select r.place, r.variant, r.run_id, r.ended_at is not null as has_ended, r.passed, r.status, r.route, r.reason,
       r.latency, r.tokens, c.expect, ${cut('c.task')} as task, ${cut('r.output')} as output
     from eval_results r join eval_cases c on c.eval_id = r.eval_id and c.place = r.place
     where r.eval_id = $1 order by r.place, r.variant`,
    [listed.id, mostCharacters],
  )
  return { ...listed, ...figuresOf(listed.compared, rows) }
}

const cut = (text: string): string =>
  `case when length(${text}) > $2 then left(${text}, $2) || ' [cut]' else ${text} end`

export async function getListed(db: Db, projectId: string, evalId: string): Promise<ListedEval> {
  const { rows } = isId(evalId)
    ? await db.query<EvalRow>(`select ${EVAL_COLUMNS} from evals where id = $1 and project_id = $2`, [
        evalId,
        projectId,
      ])
    : { rows: [] }
  if (!rows[0]) throw notFound('eval')
  return toListed(rows[0])
}

function figuresOf(
  compared: readonly string[],
  rows: readonly ResultRow[],
): Pick<Eval, 'variants' | 'deltas' | 'intervals' | 'changed'> {
  const byVariant = compared.map((_, place) => rows.filter(({ variant }) => variant === place))
  const outcomes = byVariant.map((results) => results.map(outcomeOf))
  const [first = []] = outcomes
  const versus = outcomes.map((others): Comparison => compare(first, others))
  const variants = compared.map((name, place): [string, Eval['variants'][string]] => [
    name,
    {
      ...summarize(outcomes[place] ?? []),
      correctness: correctnessOf((byVariant[place] ?? []).flatMap(endOf)),
      versus_first: place === 0 ? null : (versus[place] ?? null),
      cases: (byVariant[place] ?? []).map(toCase),
    },
  ])
  return {
    variants: Object.fromEntries(variants),
    ...(versus[1] ?? compare([], [])),
    changed: changedOf(compared, byVariant),
  }
}

const outcomeOf = ({ passed, latency, tokens }: ResultRow): MeasuredOutcome | null =>
  passed === null ? null : { passed, latency, tokens }

const endOf = ({ passed, status, route, expect }: ResultRow) =>
  passed === null || status === null ? [] : [{ expect, end: { status, route: route ?? [] } }]

function toCase({ place, has_ended: hasEnded, variant: _, expect: __, ...row }: ResultRow): CaseResult {
  const isRunning = row.run_id !== null && !hasEnded
  return { ...row, index: place, status: isRunning ? 'RUNNING' : row.status, route: row.route ?? [] }
}

/** The cases whose outcome differs between variants. */
function changedOf(compared: readonly string[], byVariant: readonly (readonly ResultRow[])[]): Eval['changed'] {
  return (byVariant[0] ?? []).flatMap(({ place, task }, index) => {
    const passed = compared.flatMap((name, variant): [string, boolean][] => {
      const found = byVariant[variant]?.[index]?.passed
      return found === undefined || found === null ? [] : [[name, found]]
    })
    const isSame = passed.every(([, one]) => one === passed[0]?.[1])
    return isSame ? [] : [{ index: place, task, passed: Object.fromEntries(passed) }]
  })
}
