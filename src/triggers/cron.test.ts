import assert from 'node:assert/strict'
import { test } from 'node:test'
import { newestTicks, nextTick } from './cron.ts'

interface Case {
  name: string
  cron: string
  zone?: string
  after: string
  /** The ticks that follow, without their seconds, which are always 0. */
  ticks: string[]
}

const BERLIN = 'Europe/Berlin' // 2026: 29 March 01:00Z from +1 to +2, 25 October 01:00Z back
const NEW_YORK = 'America/New_York' // 2026: 8 March 07:00Z from -5 to -4, 1 November 06:00Z back
const LORD_HOWE = 'Australia/Lord_Howe' // 2026: 4 April 15:00Z from +11 to +10:30, 3 October 15:30Z back
const APIA = 'Pacific/Apia' // left out 30 December 2011

const cases: Case[] = [
  {
    name: 'a step that does not divide the hour starts again with each hour',
    cron: '*/7 * * * *',
    after: '2026-05-01T10:48',
    ticks: ['2026-05-01T10:49', '2026-05-01T10:56', '2026-05-01T11:00', '2026-05-01T11:07'],
  },
  {
    name: 'a tick is after the instant, never at it',
    cron: '0 12 * * *',
    after: '2026-05-01T12:00',
    ticks: ['2026-05-02T12:00'],
  },
  {
    name: 'seconds are passed over',
    cron: '* * * * *',
    after: '2026-05-01T12:00:59.999Z',
    ticks: ['2026-05-01T12:01', '2026-05-01T12:02'],
  },
  {
    name: '31 leaves out months with fewer days',
    cron: '0 0 31 * *',
    after: '2026-01-31T00:00',
    ticks: ['2026-03-31T00:00', '2026-05-31T00:00', '2026-07-31T00:00'],
  },
  {
    name: 'the last minute of the year is followed by the first',
    cron: '59,0 23,0 31,1 12,1 *',
    after: '2026-12-31T23:58',
    ticks: ['2026-12-31T23:59', '2027-01-01T00:00', '2027-01-01T00:59'],
  },
  {
    name: '29 February comes in leap years',
    cron: '0 0 29 2 *',
    after: '2026-01-01T00:00',
    ticks: ['2028-02-29T00:00', '2032-02-29T00:00'],
  },
  {
    name: 'the eight years without 29 February are not too long',
    cron: '0 0 29 2 *',
    after: '2096-02-29T00:00',
    ticks: ['2104-02-29T00:00'],
  },
  {
    name: 'the first of March is not passed over for a day of the week after it',
    cron: '0 0 1 * 0,4',
    after: '2028-02-28T00:00',
    ticks: ['2028-03-01T00:00', '2028-03-02T00:00', '2028-03-05T00:00'],
  },
  {
    name: 'if both day fields are restricted, either of them matches',
    cron: '0 0 13 * 5',
    after: '2026-02-01T00:00',
    ticks: ['2026-02-06T00:00', '2026-02-13T00:00', '2026-02-20T00:00', '2026-02-27T00:00', '2026-03-06T00:00'],
  },
  {
    name: 'a step over days is a restriction too',
    cron: '0 0 */10 * 1',
    after: '2026-01-01T00:00',
    ticks: ['2026-01-05T00:00', '2026-01-11T00:00', '2026-01-12T00:00', '2026-01-19T00:00', '2026-01-21T00:00'],
  },
  ...['*/1', '1-31', '*,5', '1-15,16-31'].map((day) => ({
    name: `${day} leaves out no day of the month: the day of the week decides`,
    cron: `0 0 ${day} * 3`,
    after: '2026-05-01T00:00',
    ticks: ['2026-05-06T00:00', '2026-05-13T00:00', '2026-05-20T00:00'],
  })),
  ...['*/1', '0-6', '1-7', '*,3', '0,1-6'].map((weekday) => ({
    name: `${weekday} leaves out no day of the week: the day of the month decides`,
    cron: `0 0 20 * ${weekday}`,
    after: '2026-05-01T00:00',
    ticks: ['2026-05-20T00:00', '2026-06-20T00:00', '2026-07-20T00:00'],
  })),
  {
    name: 'six days of the week are a restriction',
    cron: '0 0 20 * 1-6',
    after: '2026-09-18T00:00', // a Friday
    ticks: ['2026-09-19T00:00', '2026-09-20T00:00', '2026-09-21T00:00'],
  },
  {
    name: 'white space around and between the fields means nothing',
    cron: ' 0\t0\n20 * *\r\n',
    after: '2026-05-01T00:00',
    ticks: ['2026-05-20T00:00'],
  },
  {
    name: 'Sunday is 0 and 7',
    cron: '0 0 * * 6-7',
    after: '2026-05-01T00:00',
    ticks: ['2026-05-02T00:00', '2026-05-03T00:00', '2026-05-09T00:00'],
  },
  {
    name: 'Berlin: a time that is skipped fires when the gap ends',
    cron: '30 2 * * *',
    zone: BERLIN,
    after: '2026-03-27T12:00',
    ticks: ['2026-03-28T01:30', '2026-03-29T01:00', '2026-03-30T00:30'],
  },
  {
    name: 'Berlin: several times in one gap are one tick, also with the time at its end',
    cron: '0,20,40 2,3 * * *',
    zone: BERLIN,
    after: '2026-03-29T00:50',
    ticks: ['2026-03-29T01:00', '2026-03-29T01:20', '2026-03-29T01:40', '2026-03-30T00:00'],
  },
  {
    name: 'Berlin: a time that is doubled fires once, the first time',
    cron: '30 2 * * *',
    zone: BERLIN,
    after: '2026-10-24T12:00',
    ticks: ['2026-10-25T00:30', '2026-10-26T01:30'],
  },
  {
    name: 'Berlin: a time that fired in the first pass of a doubled hour does not fire in the second',
    cron: '30,45 2 * * *',
    zone: BERLIN,
    after: '2026-10-25T01:10',
    ticks: ['2026-10-26T01:30'],
  },
  {
    name: 'Berlin: a wildcard hour fires in both passes',
    cron: '30 * * * *',
    zone: BERLIN,
    after: '2026-10-24T23:40',
    ticks: ['2026-10-25T00:30', '2026-10-25T01:30', '2026-10-25T02:30'],
  },
  {
    name: 'Berlin: a wildcard hour fires in the second pass though nothing else matches for a year',
    cron: '15 */2 25 10 *',
    zone: BERLIN,
    after: '2026-10-25T00:15',
    ticks: ['2026-10-25T01:15', '2026-10-25T03:15'],
  },
  {
    name: 'Berlin: a gap adds nothing to a wildcard hour',
    cron: '30 * * * *',
    zone: BERLIN,
    after: '2026-03-29T00:00',
    ticks: ['2026-03-29T00:30', '2026-03-29T01:30', '2026-03-29T02:30'],
  },
  {
    name: 'Berlin: a schedule of every second hour leaves out the skipped hour',
    cron: '0 */2 * * *',
    zone: BERLIN,
    after: '2026-03-28T22:30',
    ticks: ['2026-03-28T23:00', '2026-03-29T02:00', '2026-03-29T04:00'],
  },
  {
    name: 'New York: a gap',
    cron: '15 2 * * *',
    zone: NEW_YORK,
    after: '2026-03-07T12:00',
    ticks: ['2026-03-08T07:00', '2026-03-09T06:15'],
  },
  {
    name: 'New York: an overlap',
    cron: '15 1 * * *',
    zone: NEW_YORK,
    after: '2026-10-31T12:00',
    ticks: ['2026-11-01T05:15', '2026-11-02T06:15'],
  },
  {
    name: 'New York: every half hour goes by elapsed time',
    cron: '*/30 * * * *',
    zone: NEW_YORK,
    after: '2026-11-01T05:00',
    ticks: ['2026-11-01T05:30', '2026-11-01T06:00', '2026-11-01T06:30', '2026-11-01T07:00'],
  },
  {
    name: 'Lord Howe: a gap of half an hour',
    cron: '15 2 * * *',
    zone: LORD_HOWE,
    after: '2026-10-03T00:00',
    ticks: ['2026-10-03T15:30', '2026-10-04T15:15'],
  },
  {
    name: 'Lord Howe: half an hour is doubled',
    cron: '15,45 1 * * *',
    zone: LORD_HOWE,
    after: '2026-04-04T12:00',
    ticks: ['2026-04-04T14:15', '2026-04-04T14:45', '2026-04-05T14:45'],
  },
  {
    name: 'Lord Howe: a wildcard hour fires twice in the half hour',
    cron: '45 * * * *',
    zone: LORD_HOWE,
    after: '2026-04-04T14:00',
    ticks: ['2026-04-04T14:45', '2026-04-04T15:15', '2026-04-04T16:15'],
  },
  {
    name: 'Apia: a day that is left out fires when the next one begins',
    cron: '0 9 * * *',
    zone: APIA,
    after: '2011-12-29T12:00',
    ticks: ['2011-12-29T19:00', '2011-12-30T10:00', '2011-12-30T19:00'],
  },
  {
    name: 'Apia: the day alone',
    cron: '0 9 30 12 *',
    zone: APIA,
    after: '2011-06-01T00:00',
    ticks: ['2011-12-30T10:00', '2012-12-29T19:00'],
  },
  {
    name: 'a zone of a quarter of an hour',
    cron: '0 0 1 * *',
    zone: 'Asia/Kathmandu',
    after: '2026-01-01T00:00',
    ticks: ['2026-01-31T18:15', '2026-02-28T18:15'],
  },
]

for (const { name, cron, zone = 'UTC', after, ticks } of cases) {
  test(name, () => {
    const found: string[] = []
    let at = instant(after)
    for (let count = 0; count < ticks.length; count++) {
      at = nextTick(cron, zone, at) ?? assert.fail(`nothing after ${at.toISOString()}`)
      found.push(at.toISOString())
    }
    assert.deepEqual(
      found,
      ticks.map((tick) => instant(tick).toISOString()),
    )
  })
}

test('the time zone of the process makes no difference', (t) => {
  const { TZ } = process.env
  t.after(() => {
    if (TZ === undefined) delete process.env.TZ
    else process.env.TZ = TZ
  })
  process.env.TZ = NEW_YORK
  assert.equal(new Date('2026-03-08T07:00Z').getHours(), 3, 'the process is in another zone')
  for (const [cron, zone, tick] of [
    ['30 2 8 3 *', 'UTC', '2026-03-08T02:30'],
    ['30 2 29 3 *', BERLIN, '2026-03-29T01:00'],
  ] as const) {
    assert.deepEqual(nextTick(cron, zone, instant('2026-03-01T00:00')), instant(tick))
  }
})

for (const cron of ['0 0 30 2 *', '0 0 31 2,4,6,9,11 *', '* * 30,31 2 *']) {
  test(`"${cron}" is never due`, () => {
    for (const zone of ['UTC', BERLIN]) assert.equal(nextTick(cron, zone, instant('2026-01-01T00:00')), null)
  })
}

test('a day that no month has, or a weekday, is due on the weekday', () => {
  assert.equal(nextTick('0 0 30 2 1', 'UTC', instant('2026-01-01T00:00'))?.toISOString(), '2026-02-02T00:00:00.000Z')
})

const spans: [name: string, cron: string, count: number, ticks: number, newest: string, oldest: string][] = [
  ['every minute of a year', '* * * * *', 100, 100, '2026-06-30T12:00', '2026-06-30T10:21'],
  ['the newest of every minute of a year', '* * * * *', 1, 1, '2026-06-30T12:00', '2026-06-30T12:00'],
  ['a burst long ago', '* * 3 7 *', 100, 100, '2025-07-03T23:59', '2025-07-03T22:20'],
  ['fewer than asked for', '0 0 1 * *', 100, 12, '2026-06-01T00:00', '2025-07-01T00:00'],
]
for (const [name, cron, count, length, newest, oldest] of spans) {
  test(`the newest ticks of a span: ${name}`, () => {
    const first = nextTick(cron, 'UTC', instant('2025-06-30T12:00')) ?? assert.fail()
    const ticks = newestTicks(cron, 'UTC', { first, until: instant('2026-06-30T12:00:30.000Z'), count })
    assert.deepEqual([ticks.length, ticks.at(-1), ticks[0]], [length, instant(newest), instant(oldest)])
  })
}

test('the newest ticks of a span with one tick are that tick', () => {
  const first = instant('2026-05-01T00:00')
  assert.deepEqual(newestTicks('0 0 1 * *', 'UTC', { first, until: first, count: 5 }), [first])
})

function instant(text: string): Date {
  return new Date(text.endsWith('Z') ? text : `${text}:00.000Z`)
}
