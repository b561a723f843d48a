import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { createTestApp } from '../../../test/kit/app.ts'
import { readConsole } from './console.ts'

const kit = await createTestApp()
const get = (url: string, headers: Record<string, string> = {}) => kit.call(`GET ${url}`, { token: null, headers })
const BROWSER = { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' }
const built = readConsole() ?? assert.fail('The console is not built. Run `npm run prepare`.')

test('the pages are served to anybody, are asked for anew each time, and hold no inline script', async () => {
  const addresses = [
    '/',
    '/?sign_in=expired',
    '/account',
    '/invitations/whatever',
    '/resets/whatever',
    '/projects/x/runs',
  ]
  for (const url of addresses) {
    const page = await get(url)
    assert.equal(page.status, 200, url)
    assert.equal(page.headers['content-type'], 'text/html; charset=utf-8')
    assert.equal(page.headers['cache-control'], 'no-cache')
    assert.match(String(page.headers['content-security-policy']), /script-src 'self'(;|$)/)
    assert.doesNotMatch(page.text, /<script(?![^>]*src="\/assets\/)|\son\w+=|javascript:/i)
    assert.doesNotMatch(page.text, /(src|href)="(https?:)?\/\//i)
  }
})

test('an unknown address is the console to a browser, and 404 to a program', async () => {
  assert.match((await get('/nothing/here', BROWSER)).text, /<div id="root">/)
  assert.equal((await get('/nothing/here')).status, 404)
  for (const url of ['/api', '/api/nothing', '/v1/nothing', '/hooks', '/assets/nothing.js', '/docs/nothing']) {
    const answer = await get(url, BROWSER)
    assert.ok(answer.status >= 400, url)
    assert.doesNotMatch(answer.text, /<div id="root">/, url)
  }
  assert.equal((await kit.call('POST /nothing/here', { token: null, headers: BROWSER, body: {} })).status, 404)
})

test('an asset is kept for good, and is compressed for those who can read that', async () => {
  const page = await get('/')
  const named = [...page.text.matchAll(/(?:src|href)="\/assets\/([^"]+)"/g)].map(([, name = '']) => name)
  assert.ok(named.length >= 2, 'a script and a style')
  for (const name of named) assert.ok(built.assets.has(name), name)
  for (const [name, { type, content, gzip }] of built.assets) {
    const asset = await get(`/assets/${name}`)
    assert.deepEqual([asset.status, asset.headers['content-type']], [200, type], name)
    assert.equal(asset.headers['cache-control'], 'public, max-age=31536000, immutable')
    assert.equal(asset.headers['content-encoding'], undefined)
    assert.equal(Number(asset.headers['content-length']), content.length)
    const smaller = await get(`/assets/${name}`, { 'accept-encoding': 'br, gzip' })
    assert.equal(smaller.headers['content-encoding'], gzip ? 'gzip' : undefined, name)
  }
  assert.equal((await get('/assets/nothing.js')).status, 404)
})

test('a folder without a built console is no error: the start says what to run', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'muster-test-'))
  after(() => rm(folder, { recursive: true }))
  assert.equal(readConsole(pathToFileURL(`${folder}/`)), null)
})
