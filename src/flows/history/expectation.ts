// The duration that people may expect of a flow run, without waits for people. Alerts and the ETA use it.
import type { Db } from '../../db/pool.ts'

/** This many completed runs of a flow tell its duration better than its tree does. */
const FEWEST_RUNS = 3
const MOST_RUNS = 100

export interface ExpectedDuration {
  /** Milliseconds. */
  ms: number
  /** True if completed runs of the flow were measured, false if the duration was computed from the tree alone. */
  isMeasured: boolean
}

interface Expected {
  flow_id: string | null
  /** The estimate from the tree; null for runs of earlier releases. */
  expected: number | null
}

/** The median of the flow's completed runs if there are enough of them, else the estimate from the tree. */
export async function readExpectations(
  db: Db,
  runs: readonly Expected[],
): Promise<(run: Expected) => ExpectedDuration | null> {
  const medians = await readMedians(db, [...new Set(runs.flatMap(({ flow_id }) => flow_id ?? []))])
  return ({ flow_id, expected }) => {
    const median = flow_id === null ? undefined : medians.get(flow_id)
    if (median !== undefined) return { ms: median, isMeasured: true }
    return expected === null ? null : { ms: expected, isMeasured: false }
  }
}

async function readMedians(db: Db, flowIds: readonly string[]): Promise<Map<string, number>> {
  if (flowIds.length === 0) return new Map()
  const { rows } = await db.query<{ flow_id: string; median: number }>(
    `select f.id as flow_id, percentile_cont(0.5) within group (order by d.worked) as median
     from unnest($1::uuid[]) as f (id)
     cross join lateral (
       select greatest(0, duration - waited) as worked from flow_runs where flow_id = f.id and status = 'completed'
       order by completed_at desc limit $2
     ) d
     group by f.id having count(*) >= $3`,
    [flowIds, MOST_RUNS, FEWEST_RUNS],
  )
  return new Map(rows.map(({ flow_id, median }) => [flow_id, median]))
}
