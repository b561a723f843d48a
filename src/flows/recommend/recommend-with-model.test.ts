import assert from 'node:assert/strict'
import { test } from 'node:test'
import { builtInDescriptions } from '../definition/built-in-functions.ts'
import { validateFlow } from '../definition/validate.ts'
import { type BuiltInNode, builtInPatterns } from '../machine/built-in-patterns.ts'
import { type Recommendation, recommend } from './recommend.ts'
import { type Decide, type ModelQuestion, recommendWithModel } from './recommend-with-model.ts'

const workload = 'Take care of the letters.'
const byWords = recommend({ workload, patterns: builtInPatterns })

/** Gives the answers one after the other; the questions stand in `asked`. */
function answering(...answers: unknown[]): { decide: Decide; asked: ModelQuestion[] } {
  const asked: ModelQuestion[] = []
  const decide: Decide = async (_, question) => {
    const answer = answers[asked.push(question) - 1]
    if (answer instanceof Error) throw answer
    return answer === null || typeof answer === 'string' ? answer : JSON.stringify(answer)
  }
  return { decide, asked }
}
async function ask(decide: Decide, answersWithinMs = 60_000): Promise<Recommendation & { definition: BuiltInNode }> {
  const asked = { decide, projectId: 'p', answersWithinMs }
  const recommended = await recommendWithModel(asked, { workload, patterns: builtInPatterns })
  return { ...recommended, definition: recommended.definition as BuiltInNode } // of these patterns
}

test('Pattern recommendation: a model gives pattern and numbers, code makes flow and estimate', async () => {
  const { decide, asked } = answering({ pattern: 'map_reduce', items: 1_000, workers: 20, reasoning: 'Each by itself' })
  const { pattern, definition, estimate, reasoning } = await ask(decide)
  assert.equal(pattern, 'map_reduce')
  assert.ok(definition.type === 'map_reduce' && definition.workers === 20)
  // 1,000 letters, then 84 + 7 + 1 calls that put twelve answers at a time together
  assert.deepEqual([estimate.workers, estimate.model_calls], [20, 1_092])
  assert.match(reasoning, /^The model chose map_reduce: Each by itself\. Counts 1000 items, 20 workers\./)
  const known = { isAgent: () => false, isFunction: (name: string) => Object.hasOwn(builtInDescriptions, name) }
  assert.equal(validateFlow(definition, known, builtInPatterns).isValid, true)
  assert.deepEqual(
    asked.map(({ answer }) => answer.name),
    ['flow_recommendation'],
  )
  assert.ok(asked[0]?.prompt.includes(`<workload>\n${workload}\n</workload>`))
})

test('the steps that a model names become prompts, without templates of its own', async () => {
  const steps = ['Open them', 'Read {{results.secret}}', 'Answer']
  const { decide } = answering({ pattern: 'sequential', items: null, steps, reasoning: 'There is an order!' })
  const { definition, reasoning } = await ask(decide)
  assert.ok(definition.type === 'sequential')
  assert.deepEqual(
    definition.steps.map((step) => 'args' in step && step.args),
    ['Open them', 'Read { {results.secret}}', 'Answer'].map((prompt) => ({ prompt, input: '{{previous}}' })),
  )
  assert.match(reasoning, /^The model chose sequential: There is an order! /)
})

test('without a model worth asking the words decide, and the reasoning says so', async () => {
  const { decide, asked } = answering(null)
  const { reasoning, ...rest } = await ask(decide)
  assert.deepEqual({ ...rest, reasoning: byWords.reasoning }, byWords)
  assert.equal(reasoning, `${byWords.reasoning} Chosen by the words of the description: no model was asked.`)
  assert.equal(asked.length, 1)
})

test('an answer that does not fit is asked for once more, with its problem', async () => {
  const { decide, asked } = answering('Well, …', { pattern: 'pipeline', items: 30, reasoning: 'They arrive.' })
  assert.equal((await ask(decide)).pattern, 'pipeline')
  assert.match(asked[1]?.prompt ?? '', /Your last answer did not fit: The answer is no JSON\.$/)
})

const useless: [name: string, answers: unknown[], says: RegExp][] = [
  ['twice no JSON', ['no', 'no'], /its answer does not fit: The answer is no JSON\.$/],
  ['an unknown pattern', Array(2).fill({ pattern: 'circle', reasoning: '' }), /does not fit: pattern: /],
  ['a number that is none', Array(2).fill({ pattern: 'loop', items: -1, reasoning: '' }), /does not fit: items: /],
  ['an unknown field', Array(2).fill({ pattern: 'loop', reasoning: '', definition: {} }), /does not fit: /],
  ['a failure', [new Error('401: no such key.')], /the model was of no help: 401: no such key\.$/],
]
for (const [name, answers, says] of useless) {
  test(`where the model is of no use the words decide: ${name}`, async () => {
    const { reasoning, ...rest } = await ask(answering(...answers).decide)
    assert.deepEqual({ ...rest, reasoning: byWords.reasoning }, byWords)
    assert.match(reasoning, says)
  })
}

test('a recommendation does not wait for a slow model, even if the model ignores its signal', async () => {
  const heeding: Decide = (_, __, signal) =>
    new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(new Error('aborted'))))
  for (const decide of [heeding, () => new Promise<string>(() => {})]) {
    const { reasoning, pattern } = await ask(decide, 5)
    assert.equal(pattern, byWords.pattern)
    assert.match(reasoning, /Chosen by the words of the description: the model did not answer in 0\.005 s\.$/)
  }
})
