import assert from 'node:assert/strict'
import { test } from 'node:test'
import { browserOf } from './browser-name.ts'

test('a browser is told by its name and system', () => {
  const chrome = 'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0 Safari/537.36'
  const phone = 'Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605 Version/18.0 Safari/604.1'
  assert.equal(browserOf(chrome), 'Chrome on Linux')
  assert.equal(browserOf(`${chrome} Edg/140.0`), 'Edge on Linux')
  assert.equal(browserOf(phone), 'Safari on iPhone')
  assert.equal(browserOf('curl/8.5.0'), 'curl')
  assert.equal(browserOf(null), 'An unknown program')
})
