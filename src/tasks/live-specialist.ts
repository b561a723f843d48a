import type { Db } from '../db/pool.ts'
import type { SpecialistPart } from '../kernel/supervisor.ts'

type SpecialistConfig = SpecialistPart['config']

/**
 * The specialist as its variant is configured at this moment, or null if the variant has it no longer. The variant is
 * locked, so that a tool that was taken away is gone for all later commits.
 */
export async function liveSpecialist(
  tx: Db,
  projectId: string,
  { variant, node, config }: SpecialistPart,
): Promise<SpecialistConfig | null> {
  const { rows } = await tx.query<{ specialists: SpecialistConfig[] }>(
    `select config->'specialists' as specialists from systems where project_id = $1 and variant = $2 for share`,
    [projectId, variant],
  )
  // A variant without a row was never changed: its specialists are those that the run began with.
  return rows[0] ? (rows[0].specialists.find(({ name }) => name === node) ?? null) : config
}
