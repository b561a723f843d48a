// Bad input gets a clear error and changes nothing: each row is a request, its status and its code. The answers must be
// the envelope, never 5xx, and every table of the database must afterwards hold exactly the rows it held before.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ADMIN_TOKEN, type TestApp } from './app.ts'
import { dumpRows } from './database.ts'

export interface BadRequest {
  name: string
  request: string
  /** A string is sent unchanged, any other value as JSON. */
  body?: unknown
  headers?: Record<string, string>
  /** The project admin's token by default; `instance` is the instance admin's, null sends none. */
  token?: string | null
  status: number
  code: string
}

export const json = { 'content-type': 'application/json' }
export const invalid = { status: 400, code: 'INVALID_REQUEST' }
export const stranger = { status: 401, code: 'UNAUTHENTICATED' }
export const missing = { status: 404, code: 'NOT_FOUND' }
export const missingRun = { status: 404, code: 'RUN_NOT_FOUND' }
export const conflict = { status: 409, code: 'CONFLICT' }
export const media = { status: 415, code: 'UNSUPPORTED_MEDIA_TYPE' }

export function refuses(kit: TestApp, admin: string, rows: readonly BadRequest[]): void {
  for (const row of rows) {
    test(`${row.name}: ${row.status} ${row.code}, and nothing is changed`, async () => {
      const before = await dumpWithoutUse(kit)
      const answer = await send(kit, admin, row)
      assert.equal(answer.statusCode, row.status, answer.body)
      const { error } = answer.json()
      assert.deepEqual(Object.keys(answer.json()), ['error'])
      assert.deepEqual(Object.keys(error), ['code', 'message', 'details'])
      assert.equal(error.code, row.code)
      assert.ok(error.message.length > 5)
      assert.ok(answer.headers['x-request-id'])
      assert.doesNotMatch(answer.body, /node_modules|at \w+ \(|select |insert /i)
      assert.deepEqual(await dumpWithoutUse(kit), before)
    })
  }
}

export function send(kit: TestApp, admin: string, row: Omit<BadRequest, 'name' | 'status' | 'code'>) {
  const [method = '', url = ''] = row.request.split(/ (.*)/)
  const bearer = row.token === 'instance' ? ADMIN_TOKEN : (row.token ?? admin)
  const payload = row.body === undefined || typeof row.body === 'string' ? row.body : JSON.stringify(row.body)
  return kit.app.inject({
    method: method as 'GET', // any method; inject's type lists the usual ones
    url,
    headers: {
      ...(row.token === null ? {} : { authorization: `Bearer ${bearer}` }),
      ...(payload !== undefined && typeof row.body !== 'string' ? json : {}),
      ...row.headers,
    },
    ...(payload === undefined ? {} : { payload }),
  })
}

/** Leaves out the last use of keys, which every request writes. */
export async function dumpWithoutUse(kit: TestApp): Promise<Record<string, string[]>> {
  await kit.pool.query('update api_keys set last_used_at = null')
  return dumpRows(kit.pool)
}
