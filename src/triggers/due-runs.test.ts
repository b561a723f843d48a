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
/** Three hours in which nobody was there. */
const outage = { cron: '* * * * *', nextRunAt: '09:01:00', now: '12:00:30', backAt: '12:00:20', nextThen: '12:01:00' }

const cases: Case[] = [
  {
    name: 'one tick that is due is one run',
    cron: HOURLY,
    nextRunAt: '09:00:00',
    now: '09:00:00',
    ticks: ['09:00:00'],
    nextThen: '10:00:00',
  },
  {
    name: 'what is not due yet is left alone',
    cron: HOURLY,
    nextRunAt: '09:00:00',
    now: '08:59:59',
    ticks: [],
    nextThen: '09:00:00',
  },
  {
    name: 'ticks that come late under load are all run, whatever is said about missed ones',
    cron: '*/5 * * * *',
    nextRunAt: '09:00:00',
    now: '09:12:00',
    catchUp: 'skip',
    ticks: ['09:00:00', '09:05:00', '09:10:00'],
    nextThen: '09:15:00',
  },
  { name: 'once: all that was missed is one run, of the newest', ...outage, catchUp: 'once', ticks: ['12:00:00'] },
  { name: 'skip: what was missed is not run', ...outage, catchUp: 'skip', ticks: [] },
  { name: 'all: what was missed is run, a hundred at most', ...outage, catchUp: 'all', ticks: 100 },
  {
    name: 'all: fewer than a hundred are all of them',
    ...outage,
    cron: HOURLY,
    nextRunAt: '10:00:00',
    catchUp: 'all',
    ticks: ['10:00:00', '11:00:00', '12:00:00'],
    nextThen: '13:00:00',
  },
  {
    name: 'a tick after somebody is back is on time and run beside the one for those before',
    ...outage,
    backAt: '11:59:10',
    ticks: ['11:59:00', '12:00:00'],
  },
  {
    name: 'a tick after somebody is back is run though missed ones are skipped',
    ...outage,
    backAt: '11:59:10',
    catchUp: 'skip',
    ticks: ['12:00:00'],
  },
  {
    name: 'a tick at the instant somebody is back was missed',
    cron: HOURLY,
    nextRunAt: '09:00:00',
    now: '09:00:00',
    backAt: '09:00:00',
    catchUp: 'skip',
    ticks: [],
    nextThen: '10:00:00',
  },
  {
    name: 'a return that lies ahead misses nothing that is not due yet',
    cron: HOURLY,
    nextRunAt: '09:00:00',
    now: '09:30:00',
    backAt: '23:00:00',
    ticks: ['09:00:00'],
    nextThen: '10:00:00',
  },
  {
    name: 'ticks during a halt do not count',
    cron: HOURLY,
    nextRunAt: '09:00:00',
    now: '12:30:00',
    unhaltedAt: '12:29:00',
    catchUp: 'all',
    ticks: [],
    nextThen: '13:00:00',
  },
  {
    name: 'a tick after the halt counts',
    cron: HOURLY,
    nextRunAt: '09:00:00',
    now: '12:00:01',
    unhaltedAt: '11:30:00',
    ticks: ['12:00:00'],
    nextThen: '13:00:00',
  },
  {
    name: 'a tick at the very end of a halt does not count',
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

test('of a year of minutes that were missed the newest hundred are run', () => {
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
