// A node's question to its model: one durable step of the supervisor's run. The answer is journalled under the key of the
// question before anything follows from it, so a node that is executed again finds it and asks nobody.

import type { RunChange } from '../journal/run-change.ts'
import type { ModelChoice } from '../kernel/agent.ts'
import type { DecisionName } from '../kernel/decision.ts'
import { MusterError } from '../kernel/errors.ts'
import type { RunEvent } from '../kernel/run-event.ts'
import { type PromptValues, renderPrompt, usesVariable } from '../prompts/render-prompt.ts'
import { failed } from '../runs/end.ts'
import { heedSwitches } from '../runs/execute-run.ts'
import { userMessage } from '../runs/messages.ts'
import { leave, takeStep } from '../runs/model-step.ts'
import { misfit } from '../runs/opening.ts'
import { systemPart, taskTexts } from '../runs/prompt-parts.ts'
import { waitForLibrary } from '../runs/read-prompt.ts'
import { append, type Question, type Session } from '../runs/session.ts'
import { noTools } from '../runs/stages.ts'

/** The run is no longer this process's, or has ended: the graph is left where it stands. */
export class RunLeft extends Error {}

export interface NodeAsk {
  node: string
  /** Two questions of a run with the same key are one. */
  key: string
  /** The decision that is asked for; null for a text. */
  name: DecisionName | null
  promptId: string
  model: ModelChoice | null
  values: PromptValues
  /** The problem with the answer before this question. */
  problem?: string
  /** Events that are committed with the answer. */
  also?: (answer: string) => RunEvent[]
}

export async function ask(session: Session, asked: NodeAsk): Promise<string> {
  const { state } = session
  for (;;) {
    const known = state.nodeAnswers.get(asked.key)
    if (known !== undefined) return known
    if ((await heedSwitches(session)) === 'left') throw new RunLeft()
    const own = await openNode(session, asked)
    if (own && (await takeStep(own)) === 'left') throw new RunLeft()
  }
}

/** The session of a node, with its model and its question. Null: the prompt library is away, and is asked again. */
async function openNode(session: Session, asked: NodeAsk): Promise<Session | null> {
  const { deps, settings, agent, state } = session
  // The prompt of a node is no history that could be made shorter.
  state.isCompacted = true
  const choice = asked.model ?? { ...settings.default_model, max_output_tokens: 4_096 }
  const model = await deps.resolveModel(choice)
  if (!model) throw await failRun(session, 'MODEL_ERROR', `There is no provider called "${choice.provider}".`)
  const prompt = await readPrompt(session, asked)
  if (!prompt) return null
  const own: Session = { ...session, agent: { ...agent, name: asked.node, model: choice }, model, stage: noTools }
  return Object.assign(own, { question: questionOf(session, asked, prompt) })
}

async function readPrompt(
  session: Session,
  { promptId, values, problem }: NodeAsk,
): Promise<Question['prompt'] | null> {
  const { deps, run } = session
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
    if (error.code !== 'UNAVAILABLE') throw await failRun(session, error.code, error.message)
    if ((await waitForLibrary(session, error)) === 'left') throw new RunLeft()
    return null
  }
}

const questionOf = (session: Session, { name, node, key, also }: NodeAsk, prompt: Question['prompt']): Question => ({
  name,
  prompt,
  commit: async (answer, stepDone, change) => {
    if (name === null && answer === '') {
      throw await failRun(session, 'MODEL_ERROR', `The model did not finish the text that ${node} asked for.`, change)
    }
    await append(session, [stepDone({ node: { name: node, key } }), ...(also?.(answer) ?? [])], change)
    return 'again'
  },
})

/** Ends the run as failed, and returns the error that the caller throws. `change` holds the tokens of the last call. */
export async function failRun(
  session: Session,
  code: string,
  message: string,
  change: RunChange = {},
): Promise<RunLeft> {
  await leave(session, failed(code, message, session.state.text || null), [], change)
  return new RunLeft()
}
