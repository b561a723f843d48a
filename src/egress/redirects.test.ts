import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Hop, nextHop, redirectTarget } from './redirects.ts'

const from: Hop = {
  url: new URL('https://a.example/path'),
  method: 'POST',
  hasBody: true,
  headers: [
    ['accept', 'text/plain'],
    ['authorization', 'Bearer x'],
    ['content-type', 'application/json'],
    ['cookie', 'a=b'],
    ['x-api-key', 'x'],
  ],
}
const same = new URL('https://a.example/other')

test('a redirect keeps or changes the method as fetch does', () => {
  const cases: [number, string, string, boolean][] = [
    [301, 'POST', 'GET', false],
    [302, 'POST', 'GET', false],
    [303, 'POST', 'GET', false],
    [307, 'POST', 'POST', true],
    [308, 'POST', 'POST', true],
    [301, 'PUT', 'PUT', true],
    [302, 'DELETE', 'DELETE', true],
    [303, 'PUT', 'GET', false],
    [303, 'HEAD', 'HEAD', true],
    [302, 'GET', 'GET', true],
  ]
  for (const [status, method, expected, hasBody] of cases) {
    const next = nextHop({ ...from, method }, status, same)
    assert.deepEqual([next.method, next.hasBody], [expected, hasBody], `${status} ${method}`)
    assert.equal(
      next.headers.some(([name]) => name === 'content-type'),
      hasBody,
      `${status} ${method} content-type`,
    )
  }
})

test('only harmless headers are sent on to another origin', () => {
  const names = (url: string): string[] => nextHop(from, 307, new URL(url)).headers.map(([name]) => name)
  assert.deepEqual(names('https://a.example/other').length, 5)
  for (const url of ['https://b.example/', 'http://a.example/', 'https://a.example:444/', 'https://x.a.example/']) {
    assert.deepEqual(names(url), ['accept', 'content-type'], url)
  }
})

test('a location is read relative to the URL that redirects; other answers are no redirects', () => {
  assert.equal(redirectTarget(from.url, 302, 'x?y')?.href, 'https://a.example/x?y')
  assert.equal(redirectTarget(from.url, 302, '//b.example')?.href, 'https://b.example/')
  assert.equal(redirectTarget(from.url, 302, null), null)
  for (const status of [200, 300, 304, 305, 404]) assert.equal(redirectTarget(from.url, status, 'x'), null)
  assert.throws(() => redirectTarget(from.url, 302, 'http://[broken'), TypeError)
})
