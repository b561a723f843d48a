// The editor must know every pattern and every function as Muster does.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { argumentWarnings } from '../../../../src/flows/definition/argument-warnings.ts'
import { builtInDescriptions } from '../../../../src/flows/definition/built-in-functions.ts'
import { validateFlow } from '../../../../src/flows/definition/validate.ts'
import { builtInPatterns } from '../../../../src/flows/machine/built-in-patterns.ts'
import { topologies } from '../../../../src/kernel/flow.ts'
import { knownFunctions } from './functions.ts'
import { patternShapes, shapeOf } from './patterns.ts'

test('every pattern has its fields, in their order, with the hints of the guide', () => {
  assert.deepEqual(
    patternShapes.map(({ type, fields }) => [type, Object.fromEntries(fields.map(({ name, hint }) => [name, hint]))]),
    builtInPatterns.all.map(({ type, guide }) => [type, guide?.fields]),
  )
  assert.deepEqual(
    patternShapes.map(({ summary }) => summary),
    builtInPatterns.all.map(({ suits }) => suits?.summary),
  )
  assert.deepEqual(shapeOf('adaptive')?.fields.find(({ name }) => name === 'topology')?.choices, [...topologies])
})

test('a new node of every pattern can run, but for agents that are not chosen yet', () => {
  const known = { isAgent: () => true, isFunction: (name: string) => name in builtInDescriptions }
  for (const { type, blank } of patternShapes) {
    const checked = validateFlow(blank, known, builtInPatterns)
    const problems = new Set(checked.isValid ? [] : checked.problems.map(({ path }) => path))
    assert.deepEqual([...problems], type === 'hierarchical' ? ['root.queen', 'root.workers'] : [], type)
    if (checked.isValid) assert.deepEqual(argumentWarnings(checked.root, builtInPatterns), [], type)
  }
})

test('fields that may be left out are those without which a node can run', () => {
  const known = { isAgent: () => true, isFunction: () => true }
  for (const { type, fields, blank } of patternShapes) {
    const full: Record<string, unknown> = {
      ...blank,
      ...(type === 'hierarchical' ? { queen: 'q', workers: ['w'] } : {}),
    }
    for (const { name, isOptional = false } of fields) {
      const without = Object.fromEntries(Object.entries(full).filter(([key]) => key !== name))
      assert.equal(validateFlow(without, known, builtInPatterns).isValid, isOptional, `${type} without ${name}`)
    }
  }
})

test('every function of Muster is known with its description', () => {
  assert.deepEqual(Object.fromEntries(knownFunctions.map(({ name, description }) => [name, description])), {
    ...builtInDescriptions,
  })
})
