// Layouts of pages, made from plain facts: the facts that a person needs for a decision, and the buttons for it. Each
// scenario has a file; the route gathers the facts and has checked every id in them. layout-with-model.ts lets a model
// arrange the same parts, by the rules of arrange.ts.
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
