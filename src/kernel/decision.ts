// Decisions that models are asked for. An answer that does not fit is asked for once more, with the problem; then the
// decision has failed. Nothing is guessed.
import { z } from 'zod'
import { filledText } from './fields.ts'
import { layoutSchema } from './genui.ts'
import { putNewest } from './put-newest.ts'
import { MAX_DEPTH } from './strict-json.ts'
import { agentResults, toDoStatuses } from './supervisor.ts'

const text = z.string().max(200_000)
const subtask = z.strictObject({
  id: z.string().min(1).max(64),
  title: text,
  description: text,
  depends_on: z.array(z.string()).max(1_000),
  workers: z.int().min(1).max(100),
  expected: z.int().min(1).optional().describe('How long it should take, in milliseconds.'),
})
export type Subtask = z.infer<typeof subtask>

const queenPlan = z.strictObject({ subtasks: z.array(subtask).min(1).max(1_000) })
const queenAdjust = z.strictObject({
  action: z.enum(['wait', 'split', 'more_workers']),
  subtasks: z.array(subtask).max(100).optional(),
  workers: z.int().min(1).max(100).optional(),
})
const queenReview = z.strictObject({ acceptable: z.boolean(), problems: z.array(text).max(1_000), report: text })

const delegationDecision = z.strictObject({
  delegate: z.boolean(),
  subordinate: z.string().max(200).nullable().describe('The name of a subordinate, or null to let Muster choose.'),
  reasoning: text,
})
export type DelegationDecision = z.infer<typeof delegationDecision>

const plannedTask = z.strictObject({
  id: z.string().min(1).max(64).optional(),
  title: filledText(500),
  description: text,
  competencies: z.array(z.string().min(1).max(200)).max(100),
  depends_on: z.array(z.string()).max(100).optional(),
})
export type PlannedTask = z.infer<typeof plannedTask>
const taskPlan = z.strictObject({
  subtasks: z.array(plannedTask).max(100).describe('Empty if the task is best done in one piece.'),
})

const plannedToDo = z.strictObject({
  id: z.string().min(1).max(200),
  description: text,
  status: z.enum(toDoStatuses),
  owner_agent: z.string().max(200).nullish(),
  parent_id: z.string().max(200).nullish(),
  metadata: z.record(z.string(), z.unknown()).nullish(),
})
const supervisorDecision = z.strictObject({
  plan: z.array(plannedToDo).max(1_000).describe('All todos, also those that are done.'),
  action: z.enum(['delegate', 'finish', 'escalate']),
  agent: z.string().max(200).nullish().describe('With delegate: the specialist that does the next piece of work.'),
  instructions: text.nullish().describe('With delegate: what exactly is to be done.'),
  notes: text.nullish().describe('Why, in one or two sentences.'),
})
export type SupervisorDecision = z.infer<typeof supervisorDecision>

export const agentSummaryDecision = z.strictObject({
  result: z.enum(agentResults),
  short_summary: text,
  key_decisions: z.array(text).max(1_000),
  next_instructions_for_supervisor: text,
})
export type AgentSummaryDecision = z.infer<typeof agentSummaryDecision>

export const decisions = {
  queen_plan: queenPlan,
  queen_adjust: queenAdjust,
  queen_review: queenReview,
  delegation_decision: delegationDecision,
  task_plan: taskPlan,
  supervisor_decision: supervisorDecision,
  agent_summary: agentSummaryDecision,
  genui_layout: layoutSchema,
} as const
export type DecisionName = keyof typeof decisions

export interface AskedDecision {
  name: string
  schema: Record<string, unknown>
}
export const decisionOf = (name: DecisionName): AskedDecision => askedDecision(name, decisions[name])

export function askedDecision(name: string, shape: z.ZodType): AskedDecision {
  const { $schema: _, ...schema } = z.toJSONSchema(shape, { io: 'input' })
  return { name, schema }
}

type Read<Shape extends z.ZodType> = { ok: true; decision: z.infer<Shape> } | { ok: false; problem: string }
export type Decided<Name extends DecisionName> =
  | { ok: true; decision: z.infer<(typeof decisions)[Name]> }
  | { ok: false; problem: string }

/** A flow reads the same answers again and again, so the last ones are kept parsed. */
const MOST_KEPT = 100
const kept = new Map<string, unknown>()

/** Reads a model's answer, given as text or as a parsed value. Words around the JSON are passed over. */
export function readDecision<Name extends DecisionName>(name: Name, answer: unknown): Decided<Name> {
  if (typeof answer !== 'string') return readAnswer(decisions[name], answer) as Decided<Name> // checked by its schema
  const key = `${name} ${answer}`
  const known = kept.get(key) as Decided<Name> | undefined // was checked by its schema
  if (known) return known
  const read = readAnswer(decisions[name], answer) as Decided<Name> // checked by its schema
  putNewest(kept, key, read, MOST_KEPT)
  return read
}

export function readAnswer<Shape extends z.ZodType>(shape: Shape, answer: unknown): Read<Shape> {
  const value = typeof answer === 'string' ? jsonIn(answer) : answer
  if (value === undefined) return { ok: false, problem: 'The answer is no JSON.' }
  const problem = jsonProblem(value)
  if (problem !== null) return { ok: false, problem: `The answer ${problem}` }
  const parsed = shape.safeParse(value)
  if (parsed.success) return { ok: true, decision: parsed.data }
  const [issue] = parsed.error.issues
  return { ok: false, problem: `${issue?.path.map(String).join('.') || 'The answer'}: ${issue?.message}` }
}

function jsonIn(text: string): unknown {
  for (const candidate of [text, text.slice(text.indexOf('{'), text.lastIndexOf('}') + 1)]) {
    try {
      return JSON.parse(candidate)
    } catch {
      // The next candidate leaves out the words around the JSON.
    }
  }
  return undefined
}

/** The reason why a parsed value cannot be stored, or null. */
function jsonProblem(answer: unknown): string | null {
  const waiting = [{ value: answer, depth: 0 }]
  for (let next = waiting.pop(); next; next = waiting.pop()) {
    const { value, depth } = next
    if (depth > MAX_DEPTH) return `is nested deeper than ${MAX_DEPTH} levels.`
    if (typeof value === 'number' && !Number.isFinite(value)) return 'holds a number that is too large.'
    if (typeof value !== 'object' || value === null) continue
    for (const below of Object.values(value)) waiting.push({ value: below, depth: depth + 1 })
  }
  return null
}

export type PlanPart = Pick<Subtask, 'id' | 'depends_on'>

/** The reason why a plan cannot be carried out, or null. */
export function planProblem(subtasks: readonly PlanPart[]): string | null {
  const ids = new Set<string>()
  for (const { id } of subtasks) {
    if (ids.has(id)) return `Two subtasks are called ${id}.`
    ids.add(id)
  }
  for (const { id, depends_on } of subtasks) {
    const unknown = depends_on.find((other) => !ids.has(other))
    if (unknown !== undefined) return `${id} depends on ${unknown}, which is no subtask.`
  }
  const open = new Map(subtasks.map((each) => [each.id, new Set(each.depends_on)]))
  for (let isMoving = true; isMoving; ) {
    isMoving = false
    for (const [id, needs] of open) {
      if ([...needs].some((other) => open.has(other))) continue
      open.delete(id)
      isMoving = true
    }
  }
  return open.size === 0 ? null : `These subtasks wait for each other: ${[...open.keys()].join(', ')}.`
}
