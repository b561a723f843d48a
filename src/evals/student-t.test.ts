import assert from 'node:assert/strict'
import { test } from 'node:test'
import { NORMAL_975, studentT975, within } from './student-t.ts'

test('the quantiles are those of the printed tables', () => {
  const table: [degrees: number, quantile: number][] = [
    [1, 12.706],
    [2, 4.303],
    [3, 3.182],
    [4, 2.776],
    [5, 2.571],
    [9, 2.262],
    [10, 2.228],
    [19, 2.093],
    [29, 2.045],
    [30, 2.042],
    [60, 2.0],
    [99, 1.984],
    [120, 1.98],
    [999, 1.962],
  ]
  for (const [degrees, quantile] of table) {
    assert.ok(Math.abs(studentT975(degrees) - quantile) < 0.0005, `${degrees}: ${studentT975(degrees)}`)
  }
  assert.ok(Math.abs(studentT975(99) - 1.984216951586) < 1e-9)
})

test('the probability within is known in closed form for one and two degrees', () => {
  for (const t of [0, 0.5, 1, 3, 10]) {
    assert.ok(Math.abs(within(t, 1) - (2 / Math.PI) * Math.atan(t)) < 1e-14)
    assert.ok(Math.abs(within(t, 2) - t / Math.sqrt(2 + t * t)) < 1e-14)
  }
})

test('with more degrees the quantiles fall towards the one of the normal distribution', () => {
  let before = Number.POSITIVE_INFINITY
  for (let degrees = 1; degrees <= 1_000; degrees++) {
    const quantile = studentT975(degrees)
    assert.ok(quantile < before && quantile > NORMAL_975, `${degrees}`)
    before = quantile
  }
  assert.ok(before - NORMAL_975 < 0.0025)
})

test('there is no distribution without degrees', () => {
  for (const degrees of [0, -1, 1.5, Number.NaN]) assert.throws(() => studentT975(degrees), /degrees/)
})
