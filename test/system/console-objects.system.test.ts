// The objects of a project in a real browser.
import assert from 'node:assert/strict'
import { before, describe, test } from 'node:test'
import type { Agent } from '../../src/kernel/agent.ts'
import type { GraphObject, ObjectVersion, Relationship } from '../../src/kernel/object.ts'
import type { Task } from '../../src/kernel/task.ts'
import { atEnd } from '../kit/at-end.ts'
import { noBrowser, untilCount } from '../kit/browser.ts'
import { type ConsoleKit, startConsole } from '../kit/console.ts'
import { until } from '../kit/until.ts'

const skip = noBrowser
let kit: ConsoleKit

before(async () => {
  if (!skip) kit = await startConsole({ after: atEnd })
})

const create = (type: string, properties: object, key?: string): Promise<GraphObject> =>
  kit.api<GraphObject>(`POST ${kit.path}/objects`, { type, properties, ...(key !== undefined && { key }) })
const read = (id: string): Promise<GraphObject> => kit.api<GraphObject>(`GET ${kit.path}/objects/${id}`)

describe('the objects in a browser', { skip }, () => {
  test('objects are filtered by type and words in the address, and the table has the columns of the type', async (t) => {
    await create('Plant', { name: 'Rose', height: 80 })
    await create('Plant', { name: 'Tulip', height: 30 })
    await create('Bed', { name: 'Rose bed' })
    const { page, troubles } = await kit.open(t, '/objects')
    await page.getByRole('heading', { name: 'Objects', level: 1 }).waitFor()
    const types = page.getByRole('navigation', { name: 'Types' })
    await types.getByRole('link', { name: 'Plant 2' }).click()
    await page.getByRole('columnheader', { name: 'height' }).waitFor()
    assert.equal(new URL(page.url()).searchParams.get('type'), 'Plant')
    await page.getByLabel('Search').fill('tul')
    await page.waitForURL('**type=Plant&q=tul')
    await page.getByRole('link', { name: 'Rose' }).waitFor({ state: 'detached' })
    await page.getByRole('link', { name: 'Tulip' }).click()
    await page.getByRole('heading', { name: 'Tulip', level: 1 }).waitFor()
    assert.deepEqual(troubles, [])
  })

  test('an object is made, edited as a form and as JSON, and its history tells who changed what', async (t) => {
    const { page, troubles } = await kit.open(t, '/objects')
    await page.getByRole('button', { name: 'New object' }).first().click()
    const dialog = page.getByRole('dialog', { name: 'New object' })
    await dialog.getByLabel('Type').fill('Tool')
    await dialog.getByLabel('Key').fill('T-1')
    await dialog.getByRole('button', { name: 'Add property' }).click()
    await dialog.getByLabel('Property', { exact: true }).fill('colour')
    await dialog.getByLabel('Value', { exact: true }).fill('red')
    await dialog.getByRole('button', { name: 'Create' }).click()
    await page.getByRole('heading', { name: 'T-1', level: 1 }).waitFor()
    const id = page.url().split('/').at(-1) ?? ''
    await page.getByRole('button', { name: 'Edit' }).click()
    const form = page.getByRole('form', { name: 'Edit the properties' })
    await form.getByLabel('colour').fill('green')
    await form.getByRole('button', { name: 'Save' }).click()
    const history = page.getByRole('list', { name: 'Versions, newest first' })
    await history.getByText('Version 2').waitFor()
    await untilCount(history.locator('del', { hasText: 'red' }), 1)
    await page.getByRole('button', { name: 'Edit' }).click()
    await form.getByText('JSON', { exact: true }).click()
    await form.getByLabel('Properties').fill('{"weight": 2}')
    await form.getByRole('button', { name: 'Save' }).click()
    await form.getByText('Set colour to null instead.').waitFor()
    await form.getByLabel('Properties').fill('{"colour": "green", "weight": 2}')
    await form.getByRole('button', { name: 'Save' }).click()
    await history.getByText('Version 3').waitFor()
    assert.deepEqual((await read(id)).properties, { colour: 'green', weight: 2 })
    assert.deepEqual(troubles, [])
  })

  test('relationships are added and removed, and the graph shows them', async (t) => {
    const [ada, firm] = [await create('Person', { name: 'Ada' }), await create('Firm', { name: 'Engines Ltd' })]
    const { page, troubles } = await kit.open(t, `/objects/${ada.id}`)
    const related = page.getByRole('region', { name: 'Relationships' })
    await related.getByText('It is related to nothing.').waitFor()
    await related.getByRole('button', { name: 'Add relationship' }).click()
    const dialog = page.getByRole('dialog', { name: 'Add relationship' })
    await dialog.getByLabel('Type').fill('works_for')
    await dialog.getByRole('combobox', { name: 'Object' }).fill('Engines')
    await page.getByRole('option', { name: /Engines Ltd/ }).click()
    await dialog.getByRole('button', { name: 'Add', exact: true }).click()
    await related.getByRole('link', { name: 'Engines Ltd' }).waitFor()
    const graph = page.getByRole('region', { name: 'Around it' })
    await graph.getByRole('link', { name: 'Engines Ltd Firm' }).click()
    await page.getByRole('heading', { name: 'Engines Ltd', level: 1 }).waitFor()
    await related.getByRole('button', { name: 'Remove the relationship works_for with Ada' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).click()
    await related.getByText('It is related to nothing.').waitFor()
    const { items } = await kit.api<{ items: Relationship[] }>(`GET ${kit.path}/objects/${firm.id}/relationships`)
    assert.deepEqual(items, [])
    assert.deepEqual(troubles, [])
  })

  test('Delete asks once, and the history of the deleted object stays', async (t) => {
    const weed = await create('Weed', { name: 'Thistle' })
    const { page, troubles } = await kit.open(t, `/objects/${weed.id}`)
    await page.getByRole('button', { name: 'Delete' }).click()
    const dialog = page.getByRole('dialog', { name: 'Delete Thistle?' })
    await dialog.getByRole('button', { name: 'Delete' }).click()
    await page.getByRole('heading', { name: 'Objects', level: 1 }).waitFor()
    assert.notEqual((await read(weed.id)).deleted_at, null)
    await kit.goTo(page, `/objects/${weed.id}`)
    await page.getByText('deleted', { exact: true }).waitFor()
    await page.getByText('Version 2', { exact: true }).waitFor()
    assert.equal(await page.getByRole('button', { name: 'Edit' }).count(), 0)
    assert.deepEqual(troubles, [])
  })

  test('a refused object says why beside its field, and what was typed stays', async (t) => {
    const { page, troubles } = await kit.open(t, '/objects')
    await page.getByRole('button', { name: 'New object' }).first().click()
    const dialog = page.getByRole('dialog', { name: 'New object' })
    await dialog.getByLabel('Type').fill('*')
    await dialog.getByText('JSON', { exact: true }).click()
    await dialog.getByLabel('Properties').fill('{"a": ')
    await dialog.getByRole('button', { name: 'Create' }).click()
    await dialog.getByText(/This is no JSON/).waitFor()
    await dialog.getByLabel('Properties').fill('{"a": 1}')
    await dialog.getByRole('button', { name: 'Create' }).click()
    await dialog.getByText('Must not be "*", which means all types.', { exact: true }).waitFor()
    assert.equal(await dialog.getByLabel('Properties').inputValue(), '{"a": 1}')
    assert.deepEqual(troubles, [])
  })

  test('a change that somebody else made meanwhile is not lost', async (t) => {
    const pot = await create('Pot', { size: 1 }, 'P-1')
    const { page, troubles } = await kit.open(t, `/objects/${pot.id}`)
    await page.getByRole('button', { name: 'Edit' }).click()
    const form = page.getByRole('form', { name: 'Edit the properties' })
    await form.getByLabel('size').fill('3')
    const moved = await kit.muster.call(`PATCH ${kit.path}/objects/${pot.id}`, { body: { properties: { full: true } } })
    assert.equal(moved.status, 200)
    await form.getByRole('button', { name: 'Save' }).click()
    await form.getByText(/is at version 2 by now/).waitFor()
    await form.getByRole('button', { name: /Keep my text/ }).click()
    await form.getByText(/is at version 2 by now/).waitFor({ state: 'detached' })
    await form.getByRole('button', { name: 'Save' }).click()
    await page.getByText('Version 3', { exact: true }).waitFor()
    assert.deepEqual((await read(pot.id)).properties, { size: 3, full: true })
    assert.deepEqual(troubles, [])
  })

  test('an agent is named with its run in the history, and its open suggestion stands on the page', async (t) => {
    const shed = await create('Shed', { colour: 'grey' }, 'S-1')
    const tools = ['object_update']
    const model = { provider: 'planned', name: 'any' }
    const painter = await kit.api<Agent>(`POST ${kit.path}/agents`, { name: 'Painter', prompt: 'Paint.', model, tools })
    const shy = await kit.api<Agent>(`POST ${kit.path}/agents`, {
      name: 'Shy',
      prompt: 'Suggest.',
      model,
      tools,
      execution_mode: 'suggest',
    })
    const paint = (colour: string) => ({
      name: 'object_update',
      args: { id: shed.id, properties: { colour }, reasoning: `It is nicer in ${colour}.` },
    })
    const steps = (colour: string) => [{ say: 'I paint.', calls: [paint(colour)] }, { say: 'Done.' }]
    const { id: runId } = await kit.trigger({ tag: 'blue', steps: steps('blue') }, {}, painter)
    await until(async () => (await kit.readRun(runId)).completed_at !== null, 'the painter ends')
    const { id: shyRun } = await kit.trigger({ tag: 'pink', steps: steps('pink') }, {}, shy)
    await until(async () => (await kit.readRun(shyRun)).completed_at !== null, 'the suggestion is made')
    const { page, troubles } = await kit.open(t, `/objects/${shed.id}`)
    const history = page.getByRole('list', { name: 'Versions, newest first' })
    await history.getByRole('link', { name: 'Painter' }).waitFor()
    const run = history.getByRole('link', { name: 'its run' })
    assert.ok((await run.getAttribute('href'))?.endsWith(`/runs/${runId}`))
    const suggestions = page.getByRole('region', { name: 'Suggestions' })
    await suggestions.getByText('It is nicer in pink.').waitFor()
    const { items } = await kit.api<{ items: Task[] }>(`GET ${kit.path}/tasks?kind=suggestion`)
    const href = await suggestions.getByRole('link').getAttribute('href')
    assert.ok(href?.includes(items[0]?.id ?? 'none'), href ?? '')
    const { items: versions } = await kit.api<{ items: ObjectVersion[] }>(`GET ${kit.path}/objects/${shed.id}/history`)
    assert.equal(versions[0]?.run_id, runId)
    assert.deepEqual(troubles, [])
  })

  test('More shows the next page, and a viewer is offered no change', async (t) => {
    for (let number = 0; number < 52; number++) await create('Seed', { number })
    const { page, troubles } = await kit.open(t, '/objects?type=Seed')
    await page.getByRole('table', { name: 'Objects' }).waitFor()
    await untilCount(page.getByRole('row'), 51)
    await page.getByRole('button', { name: 'More' }).click()
    await page.getByRole('row').nth(52).waitFor()
    await untilCount(page.getByRole('row'), 53)
    assert.deepEqual(troubles, [])
    const pen = await create('Pen', { name: 'Pen' })
    const viewer = await kit.invite('viewer')
    const { page: theirs } = await kit.open(t, `/objects/${pen.id}`, viewer)
    await theirs.getByText('Version 1', { exact: true }).waitFor()
    for (const name of ['Edit', 'Delete', 'Add relationship']) {
      assert.equal(await theirs.getByRole('button', { name }).count(), 0, name)
    }
    await kit.goTo(theirs, '/objects')
    await theirs.getByRole('table', { name: 'Objects' }).waitFor()
    assert.equal(await theirs.getByRole('button', { name: 'New object' }).count(), 0)
  })

  test('hostile text is shown letter by letter, and an unknown object says so', async (t) => {
    const evil = '<img src=x onerror="document.title=1">'
    const object = await create(`Type ${evil}`, { [evil]: evil, name: evil, constructor: { a: evil } }, `k ${evil}`)
    const { page, troubles } = await kit.open(t, `/objects/${object.id}`)
    await page.getByText('Version 1', { exact: true }).waitFor()
    assert.equal(await page.locator('main img').count(), 0)
    await kit.goTo(page, `/objects?type=${encodeURIComponent(`Type ${evil}`)}`)
    await page.getByRole('columnheader', { name: evil }).waitFor()
    await kit.goTo(page, `/objects/${kit.agent.id}`)
    await page.getByRole('heading', { name: 'There is nothing at this address' }).waitFor()
    assert.deepEqual(troubles, [])
  })

  test('axe finds nothing on the list and on an object', async (t) => {
    const [one, other] = [await create('Fence', { a: 1, b: { c: [1] } }, 'F-1'), await create('Fence', { a: 2 }, 'F-2')]
    await kit.api(`POST ${kit.path}/relationships`, { type: 'beside', from_id: one.id, to_id: other.id })
    const { page } = await kit.open(t, '/objects')
    await kit.checkLooks(page, '/objects?type=Fence', () => page.getByText('F-1').waitFor())
    await kit.checkLooks(page, `/objects/${one.id}`, () =>
      page.getByRole('region', { name: 'Around it' }).getByText('F-2').waitFor(),
    )
  })
})
