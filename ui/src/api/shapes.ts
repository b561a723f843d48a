// Shapes of answers that src/kernel has as schemas only.
import type { z } from 'zod'
import type { meSchema } from '../../../src/kernel/access.ts'
import type { Step as AnyStep } from '../../../src/kernel/run.ts'

export type Me = z.infer<typeof meSchema>
export type Step = AnyStep
export type ModelStep = Extract<AnyStep, { kind: 'model' }>
export type ToolStep = Extract<AnyStep, { kind: 'tool' }>
