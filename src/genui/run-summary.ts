// The layout of a run: its status and the reason for it, its cost, its answer and its sub-runs.
import type { Cell, Component, Layout, LeafComponent, OfType } from '../kernel/genui.ts'
import type { Run } from '../kernel/run.ts'
import type { AgentSummary, ToDo } from '../kernel/supervisor.ts'
import type { Task } from '../kernel/task.ts'
import { NONE, sayCost, sayCount, sayCounted, sayDuration } from './amounts.ts'
import { explainStop } from './explain-stop.ts'
import { asCell, asMarkdown, asText, visible } from './plain-text.ts'
import { showQuestion } from './question.ts'

interface SubRunFacts {
  id: string
  /** The agent or the specialist. */
  name: string | null
  status: Run['status']
  pause_reason: Run['pause_reason']
  step_count: number
  total_tokens: number
  cost_usd: number | null
  duration: number | null
  /** The beginning of the answer or of the error. */
  said: string | null
}

export interface RunFacts {
  run: Run
  /** The name of the run's agent or specialist; null if it has none. */
  agent: string | null
  /** Sub-runs in the order of their start. */
  subRuns: readonly SubRunFacts[]
  /** True if there are earlier sub-runs than these. */
  hasMoreSubRuns: boolean
  questions: readonly Task[]
  /** Null for the run of an agent. */
  supervisor: { variant: string; plan: readonly ToDo[]; history: readonly AgentSummary[] } | null
}

const MOST_LISTED = 100

export function showRun(facts: RunFacts): Layout {
  const { run } = facts
  const { words, tone } = explainStop(run)
  const components: Component[] = [
    { type: 'text', id: 'title', value: titleOf(facts), style: 'title' },
    { type: 'text', id: 'why', value: asText(words), tone },
    ...showQuestions(facts),
    showFacts(run),
    ...showAnswer(facts),
    ...(facts.supervisor ? showSupervisor(facts.supervisor) : []),
    ...showSubRuns(facts),
    { type: 'group', id: 'more', title: 'More', components: showLinks(run) },
  ]
  return { components }
}

function titleOf({ agent, supervisor }: RunFacts): string {
  if (supervisor) return asText(`Run of the supervisor, variant ${supervisor.variant}`)
  return asText(agent === null ? 'Run' : `Run of ${visible(agent)}`)
}

const showQuestions = ({ questions }: RunFacts): Component[] =>
  questions.map((task, index) => ({
    type: 'group',
    id: `question_${index + 1}`,
    title: 'A question to people',
    components: showQuestion(task, `question_${index + 1}_`),
  }))

function showFacts(run: Run): Component {
  const { usage } = run
  const steps = run.max_steps === null ? sayCount(run.step_count) : `${run.step_count} of at most ${run.max_steps}`
  const tokens = `${sayCount(usage.total_tokens)} (${sayCount(usage.input_tokens)} in, ${sayCount(usage.output_tokens)} out)`
  const rows: [string, Cell][] = [
    ['Status', run.pause_reason === null ? run.status : `${run.status} (${run.pause_reason})`],
    ['Started by', run.trigger.type],
    ['Steps', steps],
    ['Tokens', usage.estimated ? `${tokens}, partly estimated` : tokens],
    ['Cost', usage.cost_usd === null ? 'unknown: the model has no price' : sayCost(usage.cost_usd)],
    ['Duration', run.duration === null ? 'not over yet' : sayDuration(run.duration)],
    ['Created', run.created_at],
    ['Ended', run.completed_at ?? NONE],
  ]
  return {
    type: 'table',
    id: 'facts',
    columns: [{ label: 'Fact' }, { label: 'Value' }],
    rows: rows.map((cells) => ({ cells })),
  }
}

/** The question of a run that waits for a person is shown as a question, not as an answer. */
function showAnswer({ run, questions }: RunFacts): Component[] {
  const said = run.summary?.trim() ?? ''
  if (said === '' || questions.length > 0) return []
  const title = run.status === 'completed' ? 'Answer' : 'Its last words'
  return [
    { type: 'group', id: 'said', title, components: [{ type: 'markdown', id: 'summary', value: asMarkdown(said) }] },
  ]
}

function showSupervisor({ plan, history }: NonNullable<RunFacts['supervisor']>): Component[] {
  const todos = plan.slice(0, MOST_LISTED).map(({ description, owner_agent: owner, status }) => ({
    cells: [asCell(description), owner === undefined ? NONE : asCell(owner), status],
  }))
  const summaries = history.slice(-MOST_LISTED).map(({ agent_name: name, result, short_summary: said }) => ({
    cells: [asCell(name), result, asCell(said)],
  }))
  return [
    ...listed('plan', 'Plan', ['Todo', 'Specialist', 'Status'], todos, plan.length),
    ...listed('history', 'Specialists', ['Specialist', 'Result', 'Summary'], summaries, history.length),
  ]
}

function showSubRuns({ subRuns, hasMoreSubRuns }: RunFacts): Component[] {
  if (subRuns.length === 0) return []
  const columns: OfType<'table'>['columns'] = [
    { label: 'Run' },
    { label: 'Status' },
    { label: 'Steps', align: 'right' },
    { label: 'Tokens', align: 'right' },
    { label: 'Cost', align: 'right' },
    { label: 'Duration', align: 'right' },
    { label: 'Result' },
  ]
  const rows = subRuns.slice(-MOST_LISTED).map((sub) => ({
    cells: [
      sub.name === null ? sub.id : asCell(sub.name),
      sub.pause_reason === null ? sub.status : `${sub.status} (${sub.pause_reason})`,
      sub.step_count,
      sub.total_tokens,
      sayCost(sub.cost_usd),
      sayDuration(sub.duration),
      sub.said === null ? NONE : asCell(sub.said),
    ],
    open: { target: 'run', id: sub.id } as const,
  }))
  const note = hasMoreSubRuns ? { note: `These are the newest ${rows.length}; there are more.` } : {}
  return [{ type: 'table', id: 'sub_runs', title: 'Sub-runs', columns, rows, ...note }]
}

function listed(
  id: string,
  title: string,
  labels: readonly string[],
  rows: OfType<'table'>['rows'],
  total: number,
): Component[] {
  if (rows.length === 0) return []
  const note = total > rows.length ? { note: `${sayCounted(total - rows.length, 'further row')} not shown.` } : {}
  return [{ type: 'table', id, title, columns: labels.map((label) => ({ label })), rows, ...note }]
}

function showLinks(run: Run): LeafComponent[] {
  const open = (id: string, label: string, of: string): LeafComponent => ({
    type: 'button',
    id,
    label,
    action: { type: 'open', target: 'run', id: of },
    emphasis: 'plain',
  })
  return [
    open('open_run', 'Open the run', run.id),
    ...(run.parent_run_id === null ? [] : [open('open_parent', 'Open the run above', run.parent_run_id)]),
    ...(run.resumed_from === null ? [] : [open('open_resumed', 'Open the run it continues', run.resumed_from)]),
  ]
}
