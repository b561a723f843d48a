import assert from 'node:assert/strict'
import { readdir, readFile } from 'node:fs/promises'
import { test } from 'node:test'
import { createTestApp } from '../../test/kit/app.ts'

const kit = await createTestApp()
const folder = new URL('pages/', import.meta.url)
const files = await readdir(folder)
const read = (file: string): Promise<string> => readFile(new URL(file, folder), 'utf8')
const get = (url: string) => kit.call(`GET ${url}`, { token: null })

test('the pages are served to anybody, and hold no script of their own', async () => {
  for (const url of ['/', '/?sign_in=expired', '/invitations/whatever', '/resets/whatever']) {
    const page = await get(url)
    assert.equal(page.status, 200)
    assert.equal(page.headers['content-type'], 'text/html; charset=utf-8')
    assert.match(String(page.headers['content-security-policy']), /script-src 'self'(;|$)/)
    assert.doesNotMatch(page.text, /<script(?![^>]*src="\/assets\/)|\son\w+=|javascript:/i)
    assert.doesNotMatch(page.text, /(src|href)="(https?:)?\/\//i)
  }
})

test('every file of the folder is served with its type, and every file that is asked for is there', async () => {
  for (const file of files.filter((name) => !name.endsWith('.html'))) {
    const asset = await get(`/assets/${file}`)
    assert.equal(asset.status, 200, file)
    assert.match(String(asset.headers['content-type']), file.endsWith('.css') ? /^text\/css/ : /^text\/javascript/)
    assert.equal(asset.headers['cache-control'], 'no-cache')
  }
  for (const file of files) {
    const text = await read(file)
    for (const [, asked = ''] of text.matchAll(/(?:from '\.\/|(?:src|href)="\/assets\/)([^'"]+)['"]/g)) {
      assert.ok(files.includes(asked), `${file} asks for ${asked}`)
    }
  }
  assert.equal((await get('/assets/nothing.js')).status, 404)
})

test('what people and models wrote never becomes HTML', async () => {
  for (const file of files.filter((name) => name.endsWith('.js'))) {
    const forbidden = /innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|\beval\(|new Function|srcdoc/
    assert.doesNotMatch(await read(file), forbidden, file)
  }
})
