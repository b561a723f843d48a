import type { Pool } from '../db/pool.ts'
import type { Egress } from '../egress/egress.ts'
import type { Tool } from '../kernel/tool.ts'
import { createGraphReaders } from '../objects/object-tools.ts'
import { seniorTools } from '../org/senior-tools.ts'
import { writeTools } from '../tasks/write-tools.ts'
import { createHttpFetchTool } from '../tools/http-fetch.ts'
import { runTools } from '../tools/run-tools.ts'

/** The tools that come with Muster. docs/tools.md is made from this list. */
export const createBuiltInTools = ({ pool, egress }: { pool: Pool; egress: Pick<Egress, 'fetch'> }): Tool[] => [
  ...runTools,
  ...writeTools,
  ...seniorTools,
  ...createGraphReaders(pool),
  createHttpFetchTool(egress),
]
