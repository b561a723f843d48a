// No text in the place of a name or an id in a path causes a server error.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestApp } from '../../../test/kit/app.ts'

const served: string[] = []
const kit = await createTestApp({ signInLimit: 0, onRoute: (route) => served.push(route) })
const project = await kit.createProject()
const routes = served.filter((route) => /[:*]/.test(route) && !route.startsWith('HEAD '))

const odd = [
  ...[
    '%00',
    'a%00b',
    '%0a',
    '%20',
    '%7f',
    '%25',
    '%2f',
    '%2e%2e%2f',
    '%5c..%5c',
    '%F0%9F%98%80',
    '%EF%BF%BE',
    '%C2%85',
  ],
  ...[
    "'",
    '"',
    '`',
    '*',
    ':id',
    '__proto__',
    'constructor',
    '-1',
    '1e309',
    'null',
    'x'.repeat(500),
    '%E2%80%AE'.repeat(40),
  ],
]

test('every route with a parameter in its path answers odd names without a server error', async () => {
  assert.ok(routes.length > 50, `${routes.length}`)
  for (const route of routes) {
    const [method = '', pattern = ''] = route.split(' ')
    // The project exists, so that the part of the path below it is read.
    const below = pattern.replace('/api/projects/:id', `/api/projects/${project.id}`)
    if (!/[:*]/.test(below)) continue
    for (const name of odd) {
      const path = below.replaceAll(/:\w+|\*/g, name)
      const answer = await kit.call(`${method} ${path}`, method === 'GET' ? {} : { body: {} })
      assert.ok(answer.status < 500, `${method} ${path}: ${answer.status} ${answer.text.slice(0, 200)}`)
    }
  }
  for (const name of odd) {
    const answer = await kit.call(`GET /api/projects/${name}/agents`)
    assert.ok(answer.status === 404 || answer.status === 400, `${name}: ${answer.status}`)
  }
})
