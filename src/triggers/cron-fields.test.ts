import assert from 'node:assert/strict'
import { test } from 'node:test'
import { cronProblem } from './cron-fields.ts'

const sound = [
  '* * * * *',
  '0 9 * * 1-5',
  '*/5 9-17/2 1,15,31 1-12 0,7',
  '59 23 31 12 7',
  '05 00 01 01 0',
  '  0\t9  * * 1 ',
  '0 9 * * 1\n',
  '\r\n0\n9 \t* * 1',
  '0 0 30 2 *',
  '1-1 * * * *',
]
for (const cron of sound) {
  test(`"${cron}" can be read`, () => assert.equal(cronProblem(cron), null))
}

const broken: [cron: string, says: RegExp][] = [
  ['', /five fields/],
  ['* * * *', /five fields/],
  ['0 0 * * * *', /five fields/],
  ['@daily', /five fields/],
  ['0 9 * * MON', /five fields/],
  ['0 9 L * *', /five fields/],
  ['0 9 ? * *', /five fields/],
  ['0 9 * * 1#2', /five fields/],
  ['0 9 * * 1\n*', /five fields/],
  [' \t\n', /five fields/],
  ['0\u00a09 * * 1', /five fields/],
  ['0 9 * * 1\v', /five fields/],
  ['60 * * * *', /the minute is 60, which must be between 0 and 59\.$/],
  ['* 24 * * *', /the hour is 24/],
  ['* * 0 * *', /the day of month is 0, which must be between 1 and 31/],
  ['* * 32 * *', /the day of month is 32/],
  ['* * * 0 *', /the month is 0/],
  ['* * * 13 *', /the month is 13/],
  ['* * * * 8', /the day of week is 8, which must be between 0 and 7/],
  ['5-99 * * * *', /the minute is 99/],
  ['99999999999999999999 * * * *', /the minute is 9+, which/],
  ['30-10 * * * *', /the minute has the range 30-10, which runs backwards/],
  ['* 22-2 * * *', /the hour has the range 22-2/],
  ['*/0 * * * *', /the minute has a step of 0, which must be between 1 and 59/],
  ['*/90 * * * *', /a step of 90/],
  ['5/15 * * * *', /"5\/15": a step follows/],
  ['*/ * * * *', /one number must follow/],
  ['*/5/5 * * * *', /one number must follow/],
  ['/5 * * * *', /a step follows/],
  ['1,,2 * * * *', /the minute has an empty part/],
  ['* 1, * * *', /the hour has an empty part/],
  ['* * , * *', /the day of month has an empty part/],
  ['1- * * * *', /"1-", which is no number/],
  ['-1 * * * *', /"-1", which is no number/],
  ['1-2-3 * * * *', /no number/],
  ['** * * * *', /"\*\*", which is no number/],
  ['*-5 * * * *', /no number/],
  ['5* * * * *', /no number/],
]
for (const [cron, says] of broken) {
  test(`"${cron}" is refused with a reason`, () => assert.match(cronProblem(cron) ?? 'it was taken', says))
}
