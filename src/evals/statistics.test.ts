import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { createRandom } from '../../test/kit/random.ts'
import { compare, type MeasuredOutcome, pairedMeans, pairedProportions, summarize } from './statistics.ts'

const outcome = fc.record({
  passed: fc.boolean(),
  latency: fc.integer({ min: 0, max: 3_600_000 }),
  tokens: fc.integer({ min: 0, max: 1_000_000 }),
})
const maybe = fc.option(outcome, { freq: 5 })
const pairs = fc.array(fc.tuple(maybe, maybe), { maxLength: 60 })
const split = (cases: [MeasuredOutcome | null, MeasuredOutcome | null][]) =>
  [cases.map(([first]) => first), cases.map(([, second]) => second)] as const

const of = (passed: boolean, latency: number | null, tokens: number | null): MeasuredOutcome => ({
  passed,
  latency,
  tokens,
})

test('known answers: four cases on paper', () => {
  // Latencies differ by 10, 20, 30 and 40: their mean is 25, their standard deviation 12.909944.
  const first = [of(true, 100, 10), of(true, 100, 20), of(false, 100, 30), of(false, 101, 40)]
  const second = [of(true, 110, 10), of(true, 120, 20), of(true, 130, 30), of(false, 141, 41)]
  assert.deepEqual(summarize(first), { pass_rate: 0.5, latency: 100, tokens: 25 })
  assert.deepEqual(summarize(second), { pass_rate: 0.75, latency: 125, tokens: 25.25 })
  const { deltas, intervals } = compare(first, second)
  assert.deepEqual(deltas, { pass_rate: 0.25, latency: 25, tokens: 0.25 })
  // 25 ± 3.182446 · 12.909944 / 2, widened to whole milliseconds.
  assert.deepEqual(intervals.latency, [4, 46])
  // 0.25 ± 3.182446 · 0.5 / 2
  assert.ok(isNear(intervals.tokens, [-0.545612, 1.045612]))
  // One case gained of four: (2/6 - 1/6) ± 1.959964 · √((3/6 - 1/36) / 6)
  assert.ok(isNear(intervals.pass_rate, [-0.383185, 0.716518]))
})

test('known answers: the paired proportions of Bonett and Price', () => {
  assert.ok(isNear(pairedProportions(100, 40, 20), [0.04964, 0.342517]))
  assert.ok(isNear(pairedProportions(10, 3, 1), [-0.222137, 0.555471]))
})

const isNear = (found: readonly number[] | null, wanted: readonly number[]): boolean =>
  found !== null && wanted.every((value, place) => Math.abs((found[place] ?? Number.NaN) - value) < 5e-6)

test('every interval contains its delta, is in order and stays within the possible values', () => {
  fc.assert(
    fc.property(pairs, (cases) => {
      const { deltas, intervals } = compare(...split(cases))
      for (const figure of ['pass_rate', 'latency', 'tokens'] as const) {
        const [delta, interval] = [deltas[figure], intervals[figure]]
        if (interval === null) continue
        assert.ok(delta !== null && interval[0] <= delta + 1e-9 && delta - 1e-9 <= interval[1], figure)
      }
      const [low, high] = intervals.pass_rate ?? [-1, 1]
      assert.ok(low >= -1 && high <= 1)
      for (const bound of intervals.latency ?? []) assert.ok(Number.isInteger(bound))
    }),
  )
})

test('the comparison the other way round is the same with the other sign', () => {
  fc.assert(
    fc.property(pairs, (cases) => {
      const [first, second] = split(cases)
      const [there, back] = [compare(first, second), compare(second, first)]
      for (const figure of ['pass_rate', 'latency', 'tokens'] as const) {
        const [delta, mirrored] = [there.deltas[figure], back.deltas[figure]]
        assert.equal(delta === null, mirrored === null)
        assert.ok(Math.abs((delta ?? 0) + (mirrored ?? 0)) < 1e-9)
        const [interval, other] = [there.intervals[figure], back.intervals[figure]]
        assert.equal(interval === null, other === null)
        if (interval && other)
          assert.ok(Math.abs(interval[0] + other[1]) < 1e-6 && Math.abs(interval[1] + other[0]) < 1e-6)
      }
    }),
  )
})

test('only cases with an outcome in both variants count, whatever their position', () => {
  fc.assert(
    fc.property(pairs, (cases) => {
      const whole = cases.filter(([first, second]) => first !== null && second !== null)
      assert.deepEqual(compare(...split(cases)), compare(...split(whole)))
    }),
  )
})

test('if all cases have an outcome, the deltas are the differences of the means', () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(outcome, outcome), { minLength: 1, maxLength: 60 }), (cases) => {
      const [first, second] = split(cases)
      const [one, other] = [summarize(first), summarize(second)]
      const { deltas } = compare(first, second)
      assert.equal(deltas.latency, (other.latency ?? 0) - (one.latency ?? 0))
      assert.ok(Math.abs((deltas.tokens ?? 0) - ((other.tokens ?? 0) - (one.tokens ?? 0))) < 1e-6)
      assert.ok(Math.abs((deltas.pass_rate ?? 0) - ((other.pass_rate ?? 0) - (one.pass_rate ?? 0))) < 1e-12)
    }),
  )
})

test('equal variants have a delta of zero, and more cases make its interval narrower', () => {
  const same = (count: number) => Array.from({ length: count }, () => of(true, 5, 7))
  const width = (count: number): number => {
    const { deltas, intervals } = compare(same(count), same(count))
    assert.deepEqual(deltas, { pass_rate: 0, latency: 0, tokens: 0 })
    const [low, high] = intervals.pass_rate ?? assert.fail()
    assert.equal(low, -high)
    return high - low
  }
  assert.ok(width(10) > width(100) && width(100) > width(1_000) && width(1_000) > 0)
})

test('no cases give no figures, and one case gives no interval', () => {
  const none = { pass_rate: null, latency: null, tokens: null }
  assert.deepEqual(summarize([null]), none)
  assert.deepEqual(compare([null], [of(true, 1, 1)]), { deltas: none, intervals: none })
  const { intervals } = compare([of(true, 1, 1)], [of(false, 2, 2)])
  assert.deepEqual([intervals.latency, intervals.tokens], [null, null])
  assert.ok(intervals.pass_rate)
})

test('a figure that is not known counts in no mean; the case counts as passed or not', () => {
  const first = [of(false, null, null), of(true, 100, 10), of(true, 200, 20), of(true, 300, null)]
  const second = [of(true, 100, 10), of(true, 110, 30), of(true, 220, 50), of(true, 330, 70)]
  assert.deepEqual(summarize(first), { pass_rate: 0.75, latency: 200, tokens: 15 })
  assert.deepEqual(summarize([of(false, null, null)]), { pass_rate: 0, latency: null, tokens: null })
  const { deltas, intervals } = compare(first, second)
  assert.deepEqual(deltas, { pass_rate: 0.25, latency: 20, tokens: 25 })
  const known = compare(first.slice(1), second.slice(1))
  assert.deepEqual(intervals.latency, known.intervals.latency)
  assert.deepEqual(intervals.tokens, compare(first.slice(1, 3), second.slice(1, 3)).intervals.tokens)
})

test('the intervals hold the truth in 95 of 100 samples', () => {
  const random = createRandom(20_260_801)
  const samples = 4_000
  let proportions = 0
  let means = 0
  for (let sample = 0; sample < samples; sample++) {
    const [count, gains, losses] = [30, 0.3, 0.1]
    const drawn = Array.from({ length: count }, () => random.next())
    const gained = drawn.filter((at) => at < gains).length
    const lost = drawn.filter((at) => at >= gains && at < gains + losses).length
    const [low, high] = pairedProportions(count, gained, lost)
    if (low <= gains - losses && gains - losses <= high) proportions++
    // The sum of four draws is symmetric, and far from normal in its tails.
    const differences = Array.from({ length: 12 }, () => random.next() + random.next() + random.next() + random.next())
    const [least, most] = pairedMeans(differences) ?? assert.fail()
    if (least <= 2 && 2 <= most) means++
  }
  for (const held of [proportions, means]) assert.ok(Math.abs(held / samples - 0.95) < 0.015, `${held / samples}`)
})
