import assert from 'node:assert/strict'
import { test } from 'node:test'
import { foldTasks } from './graph-groups.ts'
import { type Box, layOut, nearest } from './graph-layout.ts'

const task = (id: string, depends_on: string[] = []) => ({ id, depends_on, parent_id: 'root' })
const many = (count: number, depends_on: string[] = []) =>
  Array.from({ length: count }, (_, place) => task(`m${place}`, depends_on))
const open = (tasks: ReturnType<typeof task>[], isOpen = true) => layOut(foldTasks(tasks), tasks, () => isOpen)
const find = (boxes: readonly Box[], id: string): Box =>
  boxes.find(({ unit }) => unit.id === id) ?? assert.fail(`no box ${id}`)

const overlaps = (a: Box, b: Box): boolean =>
  a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height

test('a task stands right of the tasks that it waits for', () => {
  const { boxes, edges } = open([task('a'), task('b', ['a']), task('c', ['b', 'gone'])])
  const xs = ['a', 'b', 'c'].map((id) => find(boxes, id).x)
  assert.deepEqual(
    xs,
    xs.toSorted((a, b) => a - b),
  )
  assert.deepEqual(edges, [
    { from: 'a', to: 'b' },
    { from: 'b', to: 'c' },
  ])
})

test('a folded group is one box with one arrow to each neighbour', () => {
  const tasks = [task('plan'), ...many(500, ['plan']), task('end', ['m3', 'm499'])]
  const { boxes, edges } = open(tasks, false)
  assert.deepEqual(
    boxes.map(({ unit, isOpen }) => [unit.ids.length, isOpen]),
    [
      [1, false],
      [500, false],
      [1, false],
    ],
  )
  assert.deepEqual(edges, [
    { from: 'plan', to: 'beside m0' },
    { from: 'beside m0', to: 'end' },
  ])
})

test('an open group is a frame around its boxes, in rows and not in one long column, with arrows to the frame', () => {
  const tasks = [task('plan'), ...many(500, ['plan']), task('end', ['m3', 'm499'])]
  const { boxes, edges } = open(tasks)
  const frame = find(boxes, 'beside m0')
  const inside = boxes.filter(({ unit }) => unit.id.startsWith('m'))
  assert.equal(inside.length, 500)
  for (const { x, y, width, height } of inside) {
    assert.ok(
      x >= frame.x && y >= frame.y && x + width <= frame.x + frame.width && y + height <= frame.y + frame.height,
    )
  }
  assert.ok(inside.every((box, place) => inside.slice(place + 1).every((other) => !overlaps(box, other))))
  assert.ok(frame.width > frame.height && frame.width < 4 * frame.height, `${frame.width} × ${frame.height}`)
  assert.equal(edges.length, 2)
})

test('the tasks of an open chain have arrows between them', () => {
  const chain = Array.from({ length: 30 }, (_, place) => task(`m${place}`, place === 0 ? [] : [`m${place - 1}`]))
  assert.equal(open(chain).edges.length, 29)
})

test('an arrow key leads to the nearest box in its direction, or to none', () => {
  const { boxes } = open([task('a'), task('b', ['a']), task('c', ['a'])])
  const idOf = (from: string, direction: Parameters<typeof nearest>[2]) =>
    nearest(boxes, find(boxes, from), direction)?.unit.id
  assert.ok(['b', 'c'].includes(idOf('a', 'ArrowRight') ?? ''))
  assert.equal(idOf('b', 'ArrowLeft'), 'a')
  assert.equal(idOf('a', 'ArrowLeft'), undefined)
  const [upper, lower] = find(boxes, 'b').y < find(boxes, 'c').y ? (['b', 'c'] as const) : (['c', 'b'] as const)
  assert.equal(idOf(upper, 'ArrowDown'), lower)
  assert.equal(idOf(lower, 'ArrowUp'), upper)
})

test('five thousand tasks are folded and laid out within the time of a few frames', () => {
  const maps = many(5_000, ['plan'])
  const tasks = [
    task('plan'),
    ...maps,
    task(
      'end',
      maps.map(({ id }) => id),
    ),
  ]
  const begun = performance.now()
  open(tasks, false)
  assert.ok(performance.now() - begun < 500, `${performance.now() - begun} ms`)
})
