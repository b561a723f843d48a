import assert from 'node:assert/strict'
import { test } from 'node:test'
import { endPostmaster, type Postmaster } from './postmaster.ts'

function deafTo(deaf: NodeJS.Signals[], heard: NodeJS.Signals[]): Postmaster {
  let isOver = false
  return {
    pid: 1,
    gone: new Promise(() => undefined),
    isGone: async () => isOver,
    signal: (name) => {
      if (name === 'SIGCONT') return
      heard.push(name)
      isOver ||= !deaf.includes(name)
    },
  }
}

test('a server gets a fast shutdown, then an immediate one, then a kill, and no more of these than needed', async () => {
  const cases: [deaf: NodeJS.Signals[], expected: NodeJS.Signals[]][] = [
    [[], ['SIGINT']],
    [['SIGINT'], ['SIGINT', 'SIGQUIT']],
    [
      ['SIGINT', 'SIGQUIT'],
      ['SIGINT', 'SIGQUIT', 'SIGKILL'],
    ],
  ]
  for (const [deaf, expected] of cases) {
    const heard: NodeJS.Signals[] = []
    await endPostmaster(deafTo(deaf, heard), '/nowhere', { fastMs: 30, immediateMs: 30 })
    assert.deepEqual(heard, expected)
  }
})
