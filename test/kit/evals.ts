// A project with two variants of its supervisor system, each with models of its own, for tests of evals.
import assert from 'node:assert/strict'
import type { Eval, ListedEval } from '../../src/kernel/eval.ts'
import type { Model, ModelRequest } from '../../src/kernel/model-call.ts'
import type { TestAppOptions } from './app.ts'
import { createScriptedModel, type ScriptedAnswer } from './scripted-model.ts'
import { createSupervisor, delegate, finish, type Replies, summary } from './supervisor.ts'
import { until } from './until.ts'

/** The whole text that a model was shown. */
export const textOf = ({ prompt }: ModelRequest): string =>
  prompt
    .map(({ content }) => {
      if (typeof content === 'string') return content
      return content.map((part) => (part.type === 'text' ? part.text : '')).join('\n')
    })
    .join('\n')

/** The number of summaries that the supervisor or the finalizer was shown. */
export const summariesIn = (request: ModelRequest): number => textOf(request).split('"agent_name"').length - 1

/** The course of a run: R means research, T transform, E an escalation at once. */
export type Course = 'R' | 'RT' | 'E'

export const escalate = { plan: [], action: 'escalate' }
export const NAMES = { R: 'research_agent', T: 'transform_agent' } as const

/** Decides by the number of summaries so far. */
export function decide(course: Course, request: ModelRequest): object {
  if (course === 'E') return escalate
  const next = course[summariesIn(request)] as keyof typeof NAMES | undefined // letters of the course
  return next ? delegate(NAMES[next]) : finish()
}

/** The answers of green's models: a decision and the final text. An absent model answers like blue's. */
export interface GreenReplies {
  supervisor?: (request: ModelRequest) => object | ScriptedAnswer
  finalizer?: (request: ModelRequest) => string
}

export async function createEvalKit(blue: Replies = {}, green: GreenReplies = {}, options: TestAppOptions = {}) {
  const models = new Map<string, Model>(options.models)
  const { supervisor, finalizer } = green
  if (supervisor) {
    models.set(
      'green supervisor',
      createScriptedModel((request) => {
        const said = supervisor(request)
        return 'fail' in said || 'waitFor' in said ? said : { text: JSON.stringify(said) }
      }),
    )
  }
  if (finalizer)
    models.set(
      'green finalizer',
      createScriptedModel((request) => ({ text: finalizer(request) })),
    )
  const kit = await createSupervisor({ summary: { research_agent: summary() }, ...blue }, { ...options, models })
  const ofGreen = (node: 'supervisor' | 'finalizer') => ({
    ...kit.config[node],
    ...(green[node] ? { model: { ...kit.config[node].model, name: `green ${node}` } } : {}),
  })
  const { status, text } = await kit.put('green', {
    ...kit.config,
    supervisor: ofGreen('supervisor'),
    finalizer: ofGreen('finalizer'),
    traffic: 0,
  })
  assert.equal(status, 200, text)

  const read = (evalId: string) => kit.get<Eval>(`/evals/${evalId}`)
  return {
    ...kit,
    post: (cases: readonly object[], more: object = {}) =>
      kit.call<ListedEval & { error?: { code: string; message: string } }>(`POST ${kit.base}/evals`, {
        body: { name: 'An eval', variants: ['blue', 'green'], cases, ...more },
      }),
    readEval: read,
    untilEnded: async (evalId: string, withinMs = 150_000): Promise<Eval> => {
      await until(async () => (await read(evalId)).status !== 'running', 'the eval has ended', withinMs)
      return read(evalId)
    },
    /** Makes an eval and waits for its end. */
    evaluate: async (cases: readonly object[], more: object = {}): Promise<Eval> => {
      const {
        status: made,
        body,
        text: said,
      } = await kit.call<ListedEval>(`POST ${kit.base}/evals`, {
        body: { name: 'An eval', variants: ['blue', 'green'], cases, ...more },
      })
      assert.equal(made, 201, said)
      await until(async () => (await read(body.id)).status !== 'running', 'the eval has ended', 150_000)
      return read(body.id)
    },
  }
}
