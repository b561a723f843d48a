// The flow templates, one file each. They consist of built-in functions alone, so that they run in any project.
import { adaptiveBatch } from './adaptive-batch.ts'
import { codeReview } from './code-review.ts'
import { dataPipeline } from './data-pipeline.ts'
import { documentSummary } from './document-summary.ts'
import { queenLedAnalysis } from './queen-led-analysis.ts'
import { refine } from './refine.ts'
import { research } from './research.ts'
import { swarmTest } from './swarm-test.ts'
import type { FlowTemplate } from './template.ts'

export const flowTemplates: readonly FlowTemplate[] = [
  codeReview,
  dataPipeline,
  research,
  swarmTest,
  documentSummary,
  queenLedAnalysis,
  refine,
  adaptiveBatch,
]

export const findFlowTemplate = (name: string): FlowTemplate | null =>
  flowTemplates.find((template) => template.name === name) ?? null
