import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { OrgAgent } from '../../../../src/kernel/org.ts'
import { everyAgent } from '../../api/organisation.ts'
import { bestAgent, orgRows } from './org-rows.ts'

const agent = (name: string, subordinates: OrgAgent[] = [], fields: Partial<OrgAgent> = {}): OrgAgent => ({
  id: name,
  name,
  role: '',
  status: 'active',
  paused_for: null,
  competencies: [],
  load: 0,
  token_allocation: null,
  token_used: 0,
  subordinates,
  ...fields,
})

const all = { choices: new Map<string, boolean>(), chosen: undefined, find: '' }
const lines = (rows: ReturnType<typeof orgRows>): string[] =>
  rows.map(({ agent: { name }, level, isOpen }) => `${level} ${name}${isOpen === null ? '' : isOpen ? ' -' : ' +'}`)

const tree = [agent('Director', [agent('Lead', [agent('Scout', [], { role: 'searches' })]), agent('Clerk')])]

test('a small organisation is shown whole, with the level of each agent', () => {
  assert.deepEqual(lines(orgRows(tree, all)), ['1 Director -', '2 Lead -', '3 Scout', '2 Clerk'])
})

test('a folded agent hides all that are below it', () => {
  const choices = new Map([['Lead', false]])
  assert.deepEqual(lines(orgRows(tree, { ...all, choices })), ['1 Director -', '2 Lead +', '2 Clerk'])
})

test('a large organisation shows those below its one head, and the way to the chosen agent', () => {
  const many = Array.from({ length: 300 }, (_, n) => agent(`A${n}`))
  const large = [agent('Director', [agent('Lead', many), agent('Other', [agent('Scout')])])]
  assert.deepEqual(lines(orgRows(large, all)), ['1 Director -', '2 Lead +', '2 Other +'])
  assert.deepEqual(lines(orgRows(large, { ...all, chosen: 'Scout' })), [
    '1 Director -',
    '2 Lead +',
    '2 Other -',
    '3 Scout',
  ])
  assert.equal(everyAgent(large).length, 304)
  assert.deepEqual(lines(orgRows([...large, agent('Peer')], all)), ['1 Director +', '1 Peer'])
})

test('a search keeps the seniors of the agents that match', () => {
  assert.deepEqual(lines(orgRows(tree, { ...all, find: 'SEARCH' })), ['1 Director -', '2 Lead -', '3 Scout'])
  assert.deepEqual(orgRows(tree, { ...all, find: 'nobody' }), [])
})

test('the best agent knows it, is free, has the least to do, then the most tokens', () => {
  const competencies = ['Search']
  const agents = [
    agent('stuck', [], { competencies, status: 'stuck' }),
    agent('broke', [], { competencies, token_allocation: 10, token_used: 10 }),
    agent('busy', [], { competencies, load: 3 }),
    agent('poor', [], { competencies, load: 1, token_allocation: 10 }),
    agent('rich', [], { competencies, load: 1 }),
    agent('ignorant'),
  ]
  assert.equal(bestAgent(agents, ' search ')?.name, 'rich')
  assert.equal(bestAgent(agents, 'cooking'), null)
})
