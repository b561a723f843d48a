import assert from 'node:assert/strict'
import { test } from 'node:test'
import { builtInPatterns } from '../machine/built-in-patterns.ts'
import { defineApp, defineFlow, type FlowTree } from './app-module.ts'
import { validateFlow } from './validate.ts'

const known = { isAgent: () => true, isFunction: () => true }
const step = { type: 'task', function: 'f', retry: { max_retries: 2 } } as const

test('B7 defineFlow types every built-in pattern, and the tree it gives back is valid', () => {
  const trees: FlowTree[] = [
    defineFlow({ type: 'task', agent: 'Writer', input: 'About {{input.topic}}.', timeout: 5_000 }),
    defineFlow({ type: 'sequential', steps: [step, { type: 'loop', body: step, max_iterations: 3, until: 'enough' }] }),
    defineFlow({ type: 'parallel', branches: [step], aggregate: 'concat' }),
    defineFlow({ type: 'map_reduce', items: [1], workers: 2, map: 'f', reduce: { type: 'task', function: 'g' } }),
    defineFlow({ type: 'pipeline', source: '{{input.items}}', stages: [step] }),
    defineFlow({
      type: 'fork_join',
      problem: '{{input}}',
      should_split: 'f',
      split: 'f',
      solve: step,
      join: 'f',
      workers: 2,
    }),
    defineFlow({ type: 'hierarchical', queen: 'Lead', workers: ['Writer'], goal: 'A report' }),
    defineFlow({ type: 'adaptive', workers: 2, tasks: [step] }),
  ]
  for (const tree of trees) {
    const checked = validateFlow(tree, known, builtInPatterns)
    assert.ok(checked.isValid, JSON.stringify(checked))
  }
  assert.deepEqual(Object.keys(defineApp({ flows: { one: trees[0] ?? {} } }).flows ?? {}), ['one'])
})

test('B7 defineApp: an agent whose trigger lacks its configuration is a type error', () => {
  const reaction_config = { objectTypes: ['order'] }
  defineApp({
    agents: {
      Nightly: { flow_type: 'flow', flow: 'f', trigger_type: 'schedule', cron_schedule: '30 4 * * *' },
      Reacting: { trigger_type: 'reaction', reaction_config },
      Hooked: { trigger_type: 'webhook' },
      // Kept for later.
      Manual: { trigger_type: 'manual', cron_schedule: '30 4 * * *', reaction_config },
      Plain: { cron_schedule: null },
    },
  })
  defineApp({ agents: [{ name: 'Nightly', trigger_type: 'schedule', cron_schedule: '30 4 * * *' }] })
  // @ts-expect-error a schedule without cron_schedule
  defineApp({ agents: { Nightly: { trigger_type: 'schedule' } } })
  // @ts-expect-error a reaction without reaction_config
  defineApp({ agents: { Reacting: { trigger_type: 'reaction' } } })
  // @ts-expect-error the same in a list
  defineApp({ agents: [{ name: 'Nightly', trigger_type: 'schedule' }] })
  // @ts-expect-error a field that agents do not have
  defineApp({ agents: { Writer: { promt: 'x' } } })
  // @ts-expect-error the same beside a trigger
  defineApp({ agents: { Nightly: { trigger_type: 'schedule', cron_schedule: '30 4 * * *', promt: 'x' } } })
})

test('B7 defineFlow: a wrong field is a type error, and a refusal at the start too', () => {
  const wrong = [
    // @ts-expect-error a field that no pattern has
    defineFlow({ type: 'sequential', step: [step] }),
    // @ts-expect-error the field of another pattern
    defineFlow({ type: 'parallel', steps: [step], branches: [step] }),
    // @ts-expect-error an unknown type
    defineFlow({ type: 'sequence', steps: [step] }),
    // @ts-expect-error a field is missing
    defineFlow({ type: 'loop', body: step }),
    // @ts-expect-error a wrong field deep in the tree
    defineFlow({ type: 'sequential', steps: [{ type: 'loop', body: { ...step, tries: 3 }, max_iterations: 2 }] }),
    // @ts-expect-error a value that is none of those allowed
    defineFlow({ type: 'pipeline', source: [], stages: [step], on_error: 'ignore' }),
    // @ts-expect-error an agent has an input, a function has args
    defineFlow({ type: 'task', agent: 'Writer', args: {} }),
    // @ts-expect-error a leaf is an agent or a function
    defineFlow({ type: 'task', agent: 'Writer', function: 'f' }),
  ]
  for (const tree of wrong) {
    assert.equal(validateFlow(tree, known, builtInPatterns).isValid, false, JSON.stringify(tree))
  }
})
