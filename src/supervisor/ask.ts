// A node's question to its model: one durable step of the supervisor's run. The answer is journalled under the key of
// the question before it has any effect, so a node that is executed again finds the answer and calls no model.

import type { RunChange } from '../journal/run-change.ts'
import type { ModelChoice } from '../kernel/agent.ts'
import type { DecisionName } from '../kernel/decision.ts'
import { MusterError } from '../kernel/errors.ts'
import type { RunEvent } from '../kernel/run-event.ts'
import { type PromptValues, renderPrompt, usesVariable } from '../prompts/render-prompt.ts'
import { leave, runFailed } from '../runs/end.ts'
import { heedSwitches } from '../runs/heed-switches.ts'
import { userMessage } from '../runs/messages.ts'
import { takeStep } from '../runs/model-step.ts'
import { misfit } from '../runs/opening.ts'
import { append, type OwnedRun, type Question, withChange } from '../runs/owned-run.ts'
import { systemPart, taskTexts } from '../runs/prompt-parts.ts'
import { waitForLibrary } from '../runs/read-prompt.ts'
import { noTools } from '../runs/stages.ts'

/** Thrown if the run no longer belongs to this process, or has ended: the graph stops at its last checkpoint. */
export class RunLeft extends Error {}

export interface NodeAsk {
  node: string
  /** Questions of a run with the same key are asked once. */
  key: string
  name: DecisionName | null
  promptId: string
  model: ModelChoice | null
  values: PromptValues
  /** The problem with the answer before this question. */
  problem?: string
  /** Events that are committed with the answer. */
  also?: (answer: string) => RunEvent[]
}

export async function ask(owned: OwnedRun, asked: NodeAsk): Promise<string> {
  const { state } = owned
  for (;;) {
    const known = state.nodeAnswers.get(asked.key)
    if (known !== undefined) return known
    if ((await heedSwitches(owned)) === 'left') throw new RunLeft()
    if ((await openNode(owned, asked)) && (await takeStep(owned)) === 'left') throw new RunLeft()
  }
}

/**
 * Gives the run the model of the node and its question. The run is not copied: a step notes on it what its end must
 * know. False if the prompt library is unavailable; it is tried again.
 */
async function openNode(owned: OwnedRun, asked: NodeAsk): Promise<boolean> {
  const { deps, settings, state } = owned
  // The prompt of a node has no history that could be shortened.
  state.isCompacted = true
  const choice = asked.model ?? { ...settings.default_model, max_output_tokens: 4_096 }
  const model = await deps.resolveModel(choice)
  if (!model) throw await failRun(owned, 'MODEL_ERROR', `There is no provider called "${choice.provider}".`)
  const prompt = await readPrompt(owned, asked)
  if (!prompt) return false
  owned.agent = { ...owned.agent, name: asked.node, model: choice }
  owned.model = model
  owned.stage = noTools
  owned.question = questionOf(owned, asked, prompt)
  return true
}

async function readPrompt(owned: OwnedRun, { promptId, values, problem }: NodeAsk): Promise<Question['prompt'] | null> {
  const { deps, run } = owned
  try {
    const { messages } = await deps.resolvePrompt(run.project_id, promptId, run.part?.variant)
    const text = {
      messages: renderPrompt(messages, values),
      rendered: true,
      shows_task: usesVariable(messages, 'USER_INPUT'),
    }
    const shown = taskTexts(text, values.USER_INPUT ?? '')
    return [
      { role: 'system', content: systemPart(text, '') },
      ...[...shown, ...(problem === undefined ? [] : [misfit(problem)])].map((each) => userMessage(each)),
    ]
  } catch (error) {
    if (!(error instanceof MusterError)) throw error
    if (error.code !== 'UNAVAILABLE') throw await failRun(owned, error.code, error.message)
    if ((await waitForLibrary(owned, error)) === 'left') throw new RunLeft()
    return null
  }
}

const questionOf = (owned: OwnedRun, { name, node, key, also }: NodeAsk, prompt: Question['prompt']): Question => ({
  name,
  prompt,
  commit: async (answer, stepDone, change) => {
    if (name === null && answer === '') {
      throw await failRun(owned, 'MODEL_ERROR', `The model did not finish the text that ${node} asked for.`, change)
    }
    // The next owner may end the run without a call of its own, so the model is noted with the step.
    const events = [stepDone({ node: { name: node, key } }), ...(also?.(answer) ?? [])]
    await append(owned, events, withChange(change, {}))
    return 'again'
  },
})

/** Ends the run as failed, and returns the error that the caller throws. `change` holds the tokens of the last call. */
export async function failRun(
  owned: OwnedRun,
  code: string,
  message: string,
  change: RunChange = {},
): Promise<RunLeft> {
  await leave(owned, runFailed(code, message, owned.state.text || null), [], change)
  return new RunLeft()
}
