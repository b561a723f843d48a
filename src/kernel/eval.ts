// The words of evals: cases with an expectation, run on several variants of a supervisor system and compared.
import { z } from 'zod'
import { durationField, idField, instantField, nameField } from './fields.ts'
import { runInput, variantName } from './supervisor.ts'

export const evalStatuses = ['running', 'completed', 'failed', 'cancelled'] as const
export type EvalStatus = (typeof evalStatuses)[number]

const caseStatuses = ['DONE', 'ESCALATE', 'FAILED'] as const
export type CaseStatus = (typeof caseStatuses)[number]

const MOST_CASES = 1_000
export const MOST_VARIANTS = 10

export const expectation = z.strictObject({
  status: z.enum(caseStatuses).optional().describe('If the status is absent, a run that is FAILED does not pass.'),
  contains: z.string().min(1).max(10_000).optional().describe('A part of the output.'),
  route: z
    .array(z.string().min(1).max(200))
    .max(1_000)
    .optional()
    .describe('The specialists that work, in this order, and no others.'),
  max_steps: z.int().min(0).max(1_000_000).optional().describe('The most specialists that work, repetitions counted.'),
})
export type Expectation = z.infer<typeof expectation>

export const evalCase = z.union([
  z.strictObject({ task: runInput.shape.task, expect: expectation.default({}) }),
  z.strictObject({
    run_id: idField.describe(
      'A recorded run of the supervisor. Its task is given again, and its course is the expectation.',
    ),
  }),
])

export const evalInput = z.strictObject({
  name: nameField,
  cases: z.array(evalCase).min(1).max(MOST_CASES),
  variants: z
    .array(variantName)
    .min(1)
    .max(MOST_VARIANTS)
    .refine((names) => new Set(names).size === names.length, 'must be different from each other'),
})
export type EvalInput = z.infer<typeof evalInput>

export const listedEvalSchema = z.strictObject({
  id: idField,
  project_id: idField,
  name: z.string(),
  status: z.enum(evalStatuses),
  error_message: z.string().nullable(),
  compared: z.array(z.string()).describe('The variants in their order: deltas are the second minus the first.'),
  progress: z.strictObject({ done: z.int(), total: z.int() }),
  created_at: instantField,
  completed_at: instantField.nullable(),
})
export type ListedEval = z.infer<typeof listedEvalSchema>

const latencyField = durationField.nullable()
const tokensField = z.number().nullable()

export const caseResultSchema = z.strictObject({
  index: z.int(),
  task: z.string().describe('A long text is cut in a large eval; the run has the whole.'),
  passed: z.boolean().nullable().describe('Null while there is no outcome.'),
  status: z
    .enum(['RUNNING', ...caseStatuses])
    .nullable()
    .describe('Null if no run was started.'),
  route: z.array(z.string()),
  output: z.string().nullable().describe('A long text is cut; the run has the whole as its summary.'),
  reason: z.string().nullable().describe('The expectations that did not hold, and how.'),
  latency: latencyField,
  tokens: tokensField.describe('The tokens of the run and of all runs below it.'),
  run_id: idField.nullable(),
})
export type CaseResult = z.infer<typeof caseResultSchema>

/** The second variant minus the first, over the cases that have an outcome in both; null while there are none. */
export const deltasSchema = z.strictObject({
  pass_rate: z.number().nullable(),
  latency: z.int().nullable(),
  tokens: tokensField,
})

const interval = z.tuple([z.number(), z.number()]).nullable()

/** 95 % confidence intervals; null if there are too few cases for one. */
export const intervalsSchema = z.strictObject({ pass_rate: interval, latency: interval, tokens: interval })

export const comparisonSchema = z.strictObject({ deltas: deltasSchema, intervals: intervalsSchema })
export type Comparison = z.infer<typeof comparisonSchema>

const shareField = z.number().min(0).max(1).nullable()

/** The share of cases in which each kind of expectation holds; null if no case with an outcome has that kind. */
export const correctnessSchema = z.strictObject({
  status: shareField,
  routing: shareField,
  escalation: shareField.describe('A person is asked if the expected status says so, and only then.'),
})
export type Correctness = z.infer<typeof correctnessSchema>

export const variantResultSchema = z.strictObject({
  pass_rate: shareField.describe('The share of passed cases among those with an outcome; null while there are none.'),
  latency: latencyField.describe('The mean time from the start of a run until its end.'),
  tokens: tokensField.describe('The mean number of tokens of a case.'),
  correctness: correctnessSchema,
  versus_first: comparisonSchema.nullable().describe('Compared with the first variant; null for the first itself.'),
  cases: z.array(caseResultSchema),
})

export const evalSchema = listedEvalSchema.extend({
  variants: z.record(z.string(), variantResultSchema),
  deltas: deltasSchema.describe('The second variant minus the first.'),
  intervals: intervalsSchema.describe('95 % confidence intervals of the deltas.'),
  changed: z
    .array(z.strictObject({ index: z.int(), task: z.string(), passed: z.record(z.string(), z.boolean()) }))
    .describe('Cases that pass in some variants and not in others.'),
})
export type Eval = z.infer<typeof evalSchema>
