// Random scripts of work with effects: the calls that a model wants to make, and everything that goes wrong meanwhile.
// The model follows its plan by the history that it is sent, and by nothing else. A history that has lost a call, or has
// begun anew, makes the model ask for the same calls again, so each effect that happens once is the work of Muster.
import fc from 'fast-check'
import type { ModelRequest } from '../../src/kernel/model-call.ts'
import type { ScriptedAnswer, ScriptedCall } from './scripted-model.ts'

export type EffectTool = 'notify' | 'refund' | 'look'
export const effectOfTool = { notify: 'keyed', refund: 'unsafe', look: 'readonly' } as const

export interface PlannedCall {
  tool: EffectTool
  to: 'a' | 'b'
}

/** The calls of one piece of work, step by step. */
export type Plan = readonly (readonly PlannedCall[])[]

/** run: Resume by a person · task: attempts · leaf: a flow of one leaf with retries · flow: leaves in a retried pattern. */
export type Place = 'run' | 'task' | 'leaf' | 'flow'

/**
 * fail: an error for good · away: an error that is tried again · down: the provider is away for long · cut: the answer
 * breaks off · loop: the same call again and again · die: the process dies · cancel: the run is cancelled · pass: the
 * task goes to the other agent · reopen: a person sets the task to pending
 */
export type ModelFault = 'fail' | 'away' | 'down' | 'cut' | 'loop' | 'die' | 'cancel' | 'pass' | 'reopen'
/** The process dies before or after the effect; or the tool has its effect and throws. */
export type CallFault = 'dies before' | 'dies after' | 'throws'

export interface EffectScript {
  place: Place
  /** One plan for each leaf; the other places have one plan. */
  plans: readonly Plan[]
  /** Faults during model calls and during calls of tools, by the number of the call, from 1. */
  modelFaults: readonly { at: number; what: ModelFault }[]
  callFaults: readonly { at: number; what: CallFault }[]
  /** The setting model_patience. */
  patience: number
  /** Choices of people, used in turn. */
  choices: readonly number[]
}

const plannedCalls: fc.Arbitrary<PlannedCall> = fc.record({
  tool: fc.constantFrom<EffectTool>('refund', 'refund', 'notify', 'notify', 'look'),
  to: fc.constantFrom('a', 'b'),
})
const plans: fc.Arbitrary<Plan> = fc.array(fc.array(plannedCalls, { minLength: 1, maxLength: 2 }), {
  minLength: 1,
  maxLength: 3,
})
const at = fc.integer({ min: 1, max: 5 })

const modelFaultsOf = (place: Place): readonly ModelFault[] => {
  const all: ModelFault[] = ['fail', 'fail', 'away', 'down', 'cut', 'loop', 'loop', 'die', 'cancel']
  return place === 'task' ? [...all, 'pass', 'pass', 'reopen'] : all
}

export const scriptsOf = (places: readonly Place[], most = { modelFaults: 3, callFaults: 2 }) =>
  fc.constantFrom(...places).chain(
    (place): fc.Arbitrary<EffectScript> =>
      fc.record({
        place: fc.constant(place),
        plans: fc.array(plans, place === 'flow' ? { minLength: 1, maxLength: 3 } : { minLength: 1, maxLength: 1 }),
        modelFaults: fc.array(fc.record({ at, what: fc.constantFrom(...modelFaultsOf(place)) }), {
          maxLength: most.modelFaults,
        }),
        callFaults: fc.array(
          fc.record({ at, what: fc.constantFrom<CallFault>('dies before', 'dies after', 'dies after', 'throws') }),
          { maxLength: most.callFaults },
        ),
        patience: fc.constantFrom(0, 3_600_000),
        choices: fc.array(fc.nat(11), { minLength: 8, maxLength: 8 }),
      }),
  )

/** The mark of a leaf in its input; the model finds its plan by the mark. */
export const markOf = (leaf: number): string => `<<leaf ${leaf}>>`

/** The place of a call in its plan; calls that are asked for once more have the same place. */
export const positionOf = (callId: string): string => callId.replace(/r\d+$/, '')
const callId = (leaf: number, step: number, place: number): string => `p${leaf}.${step}.${place}`

/** The positions of the calls with an effect. */
export function effectsOf({ plans }: Pick<EffectScript, 'plans'>): { position: string; call: PlannedCall }[] {
  return plans
    .flatMap((plan, leaf) =>
      plan.flatMap((calls, step) => calls.map((call, place) => ({ position: callId(leaf, step, place), call }))),
    )
    .filter(({ call }) => call.tool !== 'look')
}

/** A message in the two forms in which a model is sent one: of the SDK, and of a provider's HTTP interface. */
interface ToolResult {
  id: string
  text: string
}

/** The first step of the plan that has no result yet, or a call once more that a person knows was not made. */
export function nextAnswer(
  plan: Plan,
  leaf: number,
  results: readonly ToolResult[],
): Pick<ScriptedAnswer, 'text' | 'calls'> {
  const undone = results.filter(({ id, text }) => id.startsWith('p') && /was not carried out/.test(text))
  for (const { id } of undone) {
    const again = `${positionOf(id)}r${Number(/r(\d+)$/.exec(id)?.[1] ?? 0) + 1}`
    const call = callAt(plan, id)
    if (call && !results.some((result) => result.id === again)) return { calls: [asked(again, call)] }
  }
  const known = new Set(results.map(({ id }) => id))
  for (const [step, calls] of plan.entries()) {
    const missing = calls
      .map((call, place) => asked(callId(leaf, step, place), call))
      .filter(({ id }) => !known.has(id))
    if (missing.length > 0) return { text: `Step ${step}. `, calls: missing }
  }
  return { text: 'Done.' }
}

function callAt(plan: Plan, id: string): PlannedCall | undefined {
  const [, step, place] = positionOf(id).slice(1).split('.').map(Number)
  return plan[step ?? 0]?.[place ?? 0]
}

const asked = (id: string, { tool, to }: PlannedCall): ScriptedCall & { id: string } => ({
  id,
  name: tool,
  args: { to },
})

/** The leaf of the request, and the results of its history. */
export function readRequest({ prompt }: Pick<ModelRequest, 'prompt'>): { leaf: number; results: ToolResult[] } {
  const results = prompt.flatMap((message) =>
    message.role === 'tool'
      ? message.content.flatMap((part) =>
          'toolCallId' in part
            ? [{ id: part.toolCallId, text: JSON.stringify('output' in part ? part.output : null) }]
            : [],
        )
      : [],
  )
  return { leaf: Number(/<<leaf (\d+)>>/.exec(JSON.stringify(prompt))?.[1] ?? 0), results }
}
