// A second, simpler implementation of the rules of schedules, which tries every minute of real time.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { howMany } from '../../test/kit/how-many.ts'
import { newestTicks, nextTick } from './cron.ts'
import { cronProblem } from './cron-fields.ts'

const MINUTE_MS = 60_000
const SPAN_MINUTES = 60 * 24 * 3
const RUNS = howMany(150, 4_000)

/** An instant shortly before the clocks of the zone are changed, or an ordinary one. */
const places: readonly [zone: string, at: string][] = [
  ['Europe/Berlin', '2026-03-28T12:00Z'],
  ['Europe/Berlin', '2026-10-24T12:00Z'],
  ['America/New_York', '2026-03-07T18:00Z'],
  ['America/New_York', '2026-10-31T18:00Z'],
  ['Australia/Lord_Howe', '2026-04-04T02:00Z'],
  ['Australia/Lord_Howe', '2026-10-03T02:00Z'],
  ['Pacific/Apia', '2011-12-29T00:00Z'],
  ['America/Sao_Paulo', '2018-11-03T15:00Z'], // at midnight
  ['Africa/Casablanca', '2026-02-14T12:00Z'],
  ['Asia/Kathmandu', '2026-05-01T00:00Z'],
  ['UTC', '2028-02-28T00:00Z'],
]

const field = (least: number, most: number): fc.Arbitrary<string> => {
  const number = fc.integer({ min: least, max: most })
  const range = fc.tuple(number, number).map(([one, other]) => `${Math.min(one, other)}-${Math.max(one, other)}`)
  const step = fc.integer({ min: 1, max: most })
  const part = fc.oneof(
    number.map(String),
    range,
    fc.tuple(range, step).map(([values, by]) => `${values}/${by}`),
    step.map((by) => `*/${by}`),
  )
  const parts = fc.array(part, { minLength: 1, maxLength: 3 }).map((list) => list.join(','))
  return fc.oneof({ weight: 2, arbitrary: fc.constant('*') }, { weight: 3, arbitrary: parts })
}
/** A day field that names every day, however it is written, or any other. */
const dayField = (least: number, most: number, all: readonly string[]): fc.Arbitrary<string> =>
  fc.oneof({ weight: 4, arbitrary: field(least, most) }, { weight: 1, arbitrary: fc.constantFrom(...all) })
const dates = dayField(1, 31, ['*/1', '1-31', '*,5', '1-15,16-31', '1-31/2,2-30/2'])
const weekdays = dayField(0, 7, ['*/1', '0-6', '1-7', '*,3', '0,1-6', '*/2,1-7/2'])
/** Mostly the hours in which clocks are changed. */
const hours = fc.oneof(field(0, 23), field(0, 3), fc.constantFrom('0', '1', '2', '3', '1-3', '*', '*/2'))
const crons = fc.tuple(field(0, 59), hours, dates, field(1, 12), weekdays).map((fields) => fields.join(' '))
const anywhere = fc.tuple(fc.constantFrom(...places), fc.integer({ min: 0, max: 60 * 24 }), fc.nat(MINUTE_MS - 1))

test('ticks are the same as those found by trying every minute', () => {
  let seen = 0
  fc.assert(
    fc.property(crons, anywhere, (cron, [[zone, at], minutes, ms]) => {
      assert.equal(cronProblem(cron), null)
      const start = Date.parse(at) + minutes * MINUTE_MS
      const until = start + SPAN_MINUTES * MINUTE_MS
      const expected = referenceTicks(cron, zone, start, until)
      const found: string[] = []
      // The search starts within a minute: only ticks after it count.
      let tick = nextTick(cron, zone, new Date(start - MINUTE_MS + ms))
      while (tick !== null && tick.getTime() <= until) {
        if (tick.getTime() >= start) found.push(tick.toISOString())
        tick = nextTick(cron, zone, tick)
      }
      assert.deepEqual(found, expected, `${cron} in ${zone}`)
      seen += found.length
      if (expected[0] === undefined) return
      const span = { first: new Date(expected[0]), until: new Date(until), count: 7 }
      const newest = newestTicks(cron, zone, span).map((one) => one.toISOString())
      assert.deepEqual(newest, expected.slice(-7), `the newest of ${cron} in ${zone}`)
    }),
    { numRuns: RUNS },
  )
  assert.ok(seen > RUNS, `only ${seen} ticks were compared`)
})

function referenceTicks(cron: string, zone: string, start: number, until: number): string[] {
  const matches = matcher(cron)
  const isByElapsedTime = cron.split(' ')[1]?.startsWith('*')
  const wall = wallClock(zone)
  const ticks: string[] = []
  const passed = new Set<number>()
  const before = start - 26 * 60 * MINUTE_MS
  let last = wall(before - MINUTE_MS)
  for (let at = before; at <= until; at += MINUTE_MS) {
    const now = wall(at)
    let isDue = matches(now) && (isByElapsedTime === true || !passed.has(now))
    if (isByElapsedTime !== true) {
      for (let skipped = last + MINUTE_MS; skipped < now; skipped += MINUTE_MS) isDue ||= matches(skipped)
    }
    passed.add(now)
    last = now
    if (isDue && at >= start) ticks.push(new Date(at).toISOString())
  }
  return ticks
}

/** The wall clock of the zone, as if it were UTC. */
function wallClock(zone: string): (at: number) => number {
  const format = new Intl.DateTimeFormat('sv-SE', {
    timeZone: zone,
    dateStyle: 'short',
    timeStyle: 'medium',
  })
  return (at) => Date.parse(`${format.format(at).replace(' ', 'T')}Z`)
}

function matcher(cron: string): (wall: number) => boolean {
  const [minute = '', hour = '', day = '', month = '', weekday = ''] = cron.split(' ')
  const minutes = valuesOf(minute, 0, 59)
  const hoursOfDay = valuesOf(hour, 0, 23)
  const days = valuesOf(day, 1, 31)
  const months = valuesOf(month, 1, 12)
  const weekdays = valuesOf(weekday, 0, 7)
  const everyDate = Array.from({ length: 31 }, (_, index) => index + 1)
  const isAnyDate = everyDate.every((date) => days.has(date))
  const isAnyWeekday = [1, 2, 3, 4, 5, 6].every((one) => weekdays.has(one)) && (weekdays.has(0) || weekdays.has(7))
  return (wall) => {
    const at = new Date(wall)
    const inWeek = weekdays.has(at.getUTCDay()) || (at.getUTCDay() === 0 && weekdays.has(7))
    const inMonth = days.has(at.getUTCDate())
    return (
      minutes.has(at.getUTCMinutes()) &&
      hoursOfDay.has(at.getUTCHours()) &&
      months.has(at.getUTCMonth() + 1) &&
      (isAnyDate ? inWeek : isAnyWeekday ? inMonth : inMonth || inWeek)
    )
  }
}

function valuesOf(text: string, least: number, most: number): Set<number> {
  const values = new Set<number>()
  for (const part of text.split(',')) {
    const [range = '', step = '1'] = part.split('/')
    const [from = least, to = range === '*' ? most : from] = range === '*' ? [] : range.split('-').map(Number)
    for (let value = from; value <= to; value += Number(step)) values.add(value)
  }
  return values
}
