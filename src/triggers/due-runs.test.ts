import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { CatchUp } from '../kernel/schedule.ts'
import { type DueSchedule, dueRuns } from './due-runs.ts'

interface Case {
  name: string
  cron: string
  nextRunAt: string
  now: string
  backAt?: string
  unhaltedAt?: string
  catchUp?: CatchUp
  ticks: string[] | number
  nextThen: string
}

const HOURLY = '0 * * * *'
/** An outage of three hours: no process was running. */
const outage = { cron: '* * * * *', nextRunAt: '09:01:00', now: '12:00:30', backAt: '12:00:20', nextThen: '12:01:00' }

const cases: Case[] = [
  {
    name: 'one due tick is one run',
    cron: HOURLY,
    nextRunAt: '09:00:00',
    now: '09:00:00',
    ticks: ['09:00:00'],
    nextThen: '10:00:00',
  },
  {
    name: 'a schedule that is not due yet is left alone',
    cron: HOURLY,
    nextRunAt: '09:00:00',
    now: '08:59:59',
    ticks: [],
    nextThen: '09:00:00',
  },
  {
    name: 'all ticks that are late under load are run, whatever catch_up says',
    cron: '*/5 * * * *',
    nextRunAt: '09:00:00',
    now: '09:12:00',
    catchUp: 'skip',
    ticks: ['09:00:00', '09:05:00', '09:10:00'],
    nextThen: '09:15:00',
  },
  { name: 'once: missed ticks become one run, for the newest tick', ...outage, catchUp: 'once', ticks: ['12:00:00'] },
  { name: 'skip: missed ticks are not run', ...outage, catchUp: 'skip', ticks: [] },
  { name: 'all: at most a hundred missed ticks are run', ...outage, catchUp: 'all', ticks: 100 },
  {
    name: 'all: fewer than a hundred missed ticks are all run',
    ...outage,
    cron: HOURLY,
    nextRunAt: '10:00:00',
    catchUp: 'all',
    ticks: ['10:00:00', '11:00:00', '12:00:00'],
    nextThen: '13:00:00',
  },
  {
    name: 'a tick after the outage is on time, and runs beside the run for missed ticks',
    ...outage,
    backAt: '11:59:10',
    ticks: ['11:59:00', '12:00:00'],
  },
  {
    name: 'a tick after the outage is run though missed ticks are skipped',
    ...outage,
    backAt: '11:59:10',
    catchUp: 'skip',
    ticks: ['12:00:00'],
  },
  {
    name: 'a tick at the instant at which the outage ends was missed',
    cron: HOURLY,
    nextRunAt: '09:00:00',
    now: '09:00:00',
    backAt: '09:00:00',
    catchUp: 'skip',
    ticks: [],
    nextThen: '10:00:00',
  },
  {
    name: 'an end of the outage in the future makes no future tick a missed one',
    cron: HOURLY,
    nextRunAt: '09:00:00',
    now: '09:30:00',
    backAt: '23:00:00',
    ticks: ['09:00:00'],
    nextThen: '10:00:00',
  },
  {
    name: 'ticks during a halt are not run',
    cron: HOURLY,
    nextRunAt: '09:00:00',
    now: '12:30:00',
    unhaltedAt: '12:29:00',
    catchUp: 'all',
    ticks: [],
    nextThen: '13:00:00',
  },
  {
    name: 'a tick after the halt is run',
    cron: HOURLY,
    nextRunAt: '09:00:00',
    now: '12:00:01',
    unhaltedAt: '11:30:00',
    ticks: ['12:00:00'],
    nextThen: '13:00:00',
  },
  {
    name: 'a tick at the very end of a halt is not run',
    cron: HOURLY,
    nextRunAt: '09:00:00',
    now: '09:00:00',
    unhaltedAt: '09:00:00',
    ticks: [],
    nextThen: '10:00:00',
  },
  {
    name: 'a halt that was over before the tick changes nothing',
    cron: HOURLY,
    nextRunAt: '09:00:00',
    now: '09:00:10',
    unhaltedAt: '08:00:00',
    ticks: ['09:00:00'],
    nextThen: '10:00:00',
  },
  {
    name: 'missed ticks count from the end of the halt',
    ...outage,
    cron: HOURLY,
    nextRunAt: '09:00:00',
    unhaltedAt: '10:30:00',
    catchUp: 'all',
    ticks: ['11:00:00', '12:00:00'],
    nextThen: '13:00:00',
  },
]

for (const { name, ticks, nextThen, nextRunAt, now, backAt = '00:00:00', unhaltedAt, ...rest } of cases) {
  test(name, () => {
    const due: DueSchedule = {
      catchUp: 'once',
      zone: 'UTC',
      ...rest,
      nextRunAt: at(nextRunAt),
      now: at(now),
      backAt: at(backAt),
      unhaltedAt: unhaltedAt === undefined ? null : at(unhaltedAt),
    }
    const owed = dueRuns(due)
    if (typeof ticks === 'number') assert.equal(owed.ticks.length, ticks)
    else assert.deepEqual(owed.ticks, ticks.map(at))
    assert.deepEqual(owed.nextRunAt, at(nextThen))
  })
}

test('the newest hundred of a year of missed minutes are run', () => {
  const now = new Date('2027-01-01T00:00:30Z')
  const facts = {
    cron: '* * * * *',
    zone: 'Europe/Berlin',
    nextRunAt: at('09:00:00'),
    now,
    backAt: now,
    unhaltedAt: null,
  }
  const { ticks, nextRunAt } = dueRuns({ ...facts, catchUp: 'all' })
  assert.equal(ticks.length, 100)
  assert.deepEqual(
    [ticks[0], ticks.at(-1), nextRunAt].map((tick) => tick?.toISOString()),
    ['2026-12-31T22:21:00.000Z', '2027-01-01T00:00:00.000Z', '2027-01-01T00:01:00.000Z'],
  )
})

function at(time: string): Date {
  return new Date(`2026-05-01T${time}Z`)
}
