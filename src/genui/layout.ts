// Layouts of pages, from plain facts: what a person needs to see in order to decide, and the buttons that do it. The same
// facts give the same layout. Each scenario has a file; the route gathers the facts and has checked every id in them.
// layout-with-model.ts lets a model arrange the same parts; arrange.ts says what the model may and may not do.
import type { Layout, Scenario } from '../kernel/genui.ts'
import { type ApprovalFacts, showApproval } from './approval.ts'
import { type EvalFacts, showEval } from './eval-comparison.ts'
import { type GenericFacts, showGeneric } from './generic.ts'
import { type RunFacts, showRun } from './run-summary.ts'

export type LayoutFacts = { scenario: Scenario } & (
  | { scenario: 'generic'; facts: GenericFacts }
  | { scenario: 'approval'; facts: ApprovalFacts }
  | { scenario: 'run_summary'; facts: RunFacts }
  | { scenario: 'eval_comparison'; facts: EvalFacts }
)

export function layOut({ scenario, facts }: LayoutFacts): Layout {
  switch (scenario) {
    case 'generic':
      return showGeneric(facts)
    case 'approval':
      return showApproval(facts)
    case 'run_summary':
      return showRun(facts)
    case 'eval_comparison':
      return showEval(facts)
  }
}
