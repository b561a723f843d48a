import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createPoolMeasures } from './measures.ts'

test('each topology has measures of its own, over the time in which there was work', () => {
  const measures = createPoolMeasures()
  measures.work('mesh', 5_000)
  for (const waitMs of [0, 0, 100, 100]) measures.succeeded('mesh', waitMs, 100)
  measures.work(null, 5_200)
  measures.work('star', 65_200)
  for (const waitMs of [50, 50]) measures.succeeded('star', waitMs, 200)
  measures.work(null, 65_450)
  assert.deepEqual(measures.read(125_450), {
    mesh: { tasks: 4, throughput: 20, wait: 50, duration: 100 },
    star: { tasks: 2, throughput: 8, wait: 50, duration: 200 },
  })
})

test('a switch while there is work divides the time between both topologies', () => {
  const measures = createPoolMeasures()
  for (const [place, topology] of (['mesh', 'star', 'custom'] as const).entries()) {
    measures.work(topology, place * 500)
    measures.succeeded(topology, 0, 500)
  }
  const { mesh, star, custom } = measures.read(1_500)
  assert.deepEqual([mesh?.throughput, star?.throughput, custom?.throughput], [2, 2, 2])
})
