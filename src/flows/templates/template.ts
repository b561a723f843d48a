import type { FlowNode, Pattern } from '../../kernel/flow.ts'

/** A flow that is ready to run, and a start for one's own. It needs no agent: its leaves are built-in functions. */
export interface FlowTemplate {
  /** What `POST /flow-runs {template}` calls it. */
  name: string
  title: string
  description: string
  /** What to give it, what comes out, and what to change first. */
  usage: string
  /** The type of its root. */
  pattern: Pattern['type']
  example: { input: Readonly<Record<string, unknown>> }
  root: FlowNode
}
