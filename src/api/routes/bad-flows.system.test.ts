// Bad input to flows and flow runs.
import { createTestApp } from '../../../test/kit/app.ts'
import {
  type BadRequest,
  conflict,
  invalid,
  json,
  missing,
  missingRun,
  refuses,
} from '../../../test/kit/bad-requests.ts'
import { newId } from '../../kernel/id.ts'

const kit = await createTestApp({ functions: { f: () => 1 } })
const project = await kit.createProject()
const admin = (await kit.createKey(project.id, 'admin')).key
const base = `/api/projects/${project.id}`
const root = { type: 'task', function: 'f' }
const made = async (route: string, body: object): Promise<string> =>
  (await kit.call<{ id: string }>(route, { body })).body.id
const flow = await made(`POST ${base}/flows`, { name: 'taken', root })
const other = await made(`POST ${base}/flows`, { name: 'other', root })
const run = await made(`POST ${base}/flow-runs`, { root })
const ended = await made(`POST ${base}/flow-runs`, { root })
await kit.pool.query(
  `update flow_runs set status = 'failed', completed_at = muster.now(), ready_at = null where id = $1`,
  [ended],
)

const flows = `POST ${base}/flows`
const change = `PATCH ${base}/flows/${other}`
const start = `POST ${base}/flow-runs`
const workers = `POST ${base}/flow-runs/${run}/workers`
const adjust = `PATCH ${base}/flow-runs/${run}`
const topology = `POST ${base}/flow-runs/${run}/topology`
const deep = (levels: number): object => (levels === 0 ? root : { type: 'sequential', steps: [deep(levels - 1)] })
const wide = { type: 'parallel', branches: Array.from({ length: 10_001 }, () => root) }

const rows: BadRequest[] = [
  { name: 'a flow without a body', request: flows, ...invalid },
  { name: 'a flow without a name', request: flows, body: { root }, ...invalid },
  { name: 'a flow without a root', request: flows, body: { name: 'x' }, ...invalid },
  { name: 'a blank name', request: flows, body: { name: ' ', root }, ...invalid },
  { name: 'a name of 201 characters', request: flows, body: { name: 'x'.repeat(201), root }, ...invalid },
  { name: 'a name that is a number', request: flows, body: { name: 7, root }, ...invalid },
  { name: 'an id of one’s own', request: flows, body: { name: 'x', root, id: newId() }, ...invalid },
  { name: 'a root that is null', request: flows, body: { name: 'x', root: null }, ...invalid },
  { name: 'a root that is a list', request: flows, body: { name: 'x', root: [root] }, ...invalid },
  { name: 'a root that is a text', request: flows, body: { name: 'x', root: 'f' }, ...invalid },
  { name: 'an unknown pattern', request: flows, body: { name: 'x', root: { type: 'circle' } }, ...invalid },
  {
    name: 'an unknown property of a node',
    request: flows,
    body: { name: 'x', root: { ...root, colour: 1 } },
    ...invalid,
  },
  { name: 'an id with a blank', request: flows, body: { name: 'x', root: { ...root, id: 'a b' } }, ...invalid },
  { name: 'too deep', request: flows, body: { name: 'x', root: deep(25) }, ...invalid },
  { name: 'too many leaves', request: flows, body: { name: 'x', root: wide }, ...invalid },
  {
    name: '__proto__ in a tree',
    request: flows,
    body: '{"name":"x","root":{"type":"task","function":"f","args":{"__proto__":{}}}}',
    headers: json,
    ...invalid,
  },
  {
    name: 'a NUL in a tree',
    request: flows,
    body: '{"name":"x","root":{"type":"task","function":"f","args":"\\u0000"}}',
    headers: json,
    ...invalid,
  },
  { name: 'a name that is taken', request: flows, body: { name: 'taken', root }, ...conflict },
  { name: 'a change to a name that is taken', request: change, body: { name: 'taken' }, ...conflict },
  { name: 'a change to a value that is no tree', request: change, body: { root: null }, ...invalid },
  { name: 'a change of a read-only field', request: change, body: { created_at: 'now' }, ...invalid },
  { name: 'a change without a body', request: change, ...invalid },
  { name: 'a flow that is not there', request: `GET ${base}/flows/${newId()}`, ...missing },
  { name: 'a flow by its name', request: `GET ${base}/flows/taken`, ...missing },
  { name: 'a change of a flow that is not there', request: `PATCH ${base}/flows/${newId()}`, body: {}, ...missing },
  { name: 'a deletion of a flow that is not there', request: `DELETE ${base}/flows/${newId()}`, ...missing },
  { name: 'validate without a root', request: `${flows}/validate`, body: {}, ...invalid },
  { name: 'validate with more than a root', request: `${flows}/validate`, body: { root, name: 'x' }, ...invalid },
  { name: 'a list with an unknown filter', request: `GET ${base}/flows?colour=red`, ...invalid },

  { name: 'a start without a flow', request: start, body: {}, ...invalid },
  { name: 'a start of a flow and a tree at once', request: start, body: { root, flow_id: flow }, ...invalid },
  { name: 'a start of a flow that is no id', request: start, body: { flow_id: 'taken' }, ...invalid },
  { name: 'a start of a flow that is not there', request: start, body: { flow_id: newId() }, ...missing },
  { name: 'a timeout of 0', request: start, body: { root, timeout: 0 }, ...invalid },
  { name: 'a timeout in words', request: start, body: { root, timeout: '5 s' }, ...invalid },
  { name: 'a timeout that is too large', request: start, body: { root, timeout: 2 ** 31 }, ...invalid },
  { name: 'no workers', request: start, body: { root, workers: 0 }, ...invalid },
  { name: 'half a worker', request: start, body: { root, workers: 1.5 }, ...invalid },
  { name: 'too many workers', request: start, body: { root, workers: 10_001 }, ...invalid },
  { name: 'an unknown property of a start', request: start, body: { root, colour: 1 }, ...invalid },
  { name: 'a root that is no node', request: start, body: { root: null }, ...invalid },

  ...['', '/tasks', '/trace', '/metrics', '/topology', '/events', '/output'].flatMap((part): BadRequest[] => [
    { name: `a flow run that is not there${part}`, request: `GET ${base}/flow-runs/${newId()}${part}`, ...missingRun },
    { name: `a malformed flow run id${part}`, request: `GET ${base}/flow-runs/none${part}`, ...missingRun },
  ]),
  { name: 'a cancel of an unknown flow run', request: `POST ${base}/flow-runs/${newId()}/cancel`, ...missingRun },
  { name: 'a cancel with a body', request: `POST ${base}/flow-runs/${run}/cancel`, body: { now: true }, ...invalid },
  {
    name: 'workers for nothing',
    request: `POST ${base}/flow-runs/${newId()}/workers`,
    body: { add: 1 },
    ...missingRun,
  },
  { name: 'workers after the end', request: `POST ${base}/flow-runs/${ended}/workers`, body: { add: 1 }, ...conflict },
  { name: 'no workers more', request: workers, body: { add: 0 }, ...invalid },
  { name: 'fewer workers', request: workers, body: { add: -1 }, ...invalid },
  { name: 'workers in words', request: workers, body: { add: '1' }, ...invalid },
  { name: 'workers without a number', request: workers, body: {}, ...invalid },
  { name: 'an adjustment of nothing', request: `PATCH ${base}/flow-runs/${newId()}`, body: {}, ...missingRun },
  {
    name: 'an adjustment after the end',
    request: `PATCH ${base}/flow-runs/${ended}`,
    body: { workers: 1 },
    ...conflict,
  },
  { name: 'no adjustment after the end', request: `PATCH ${base}/flow-runs/${ended}`, body: {}, ...conflict },
  { name: 'an adjustment without a body', request: adjust, ...invalid },
  { name: 'an adjustment to no time', request: adjust, body: { timeout: 0 }, ...invalid },
  { name: 'an adjustment to a time beyond all', request: adjust, body: { timeout: 2 ** 31 }, ...invalid },
  { name: 'an adjustment to a time in words', request: adjust, body: { timeout: '5 s' }, ...invalid },
  { name: 'an adjustment to no workers', request: adjust, body: { workers: 0 }, ...invalid },
  { name: 'an adjustment to too many workers', request: adjust, body: { workers: 10_001 }, ...invalid },
  { name: 'an adjustment of something else', request: adjust, body: { status: 'completed' }, ...invalid },
  { name: 'an unknown topology', request: topology, body: { topology: 'ring' }, ...invalid },
  { name: 'a switch without a topology', request: topology, body: {}, ...invalid },
  { name: 'a switch with edges', request: topology, body: { topology: 'mesh', edges: [] }, ...invalid },
  { name: 'a switch of a flow without a topology', request: topology, body: { topology: 'mesh' }, ...conflict },
  { name: 'an unknown format', request: `GET ${base}/flow-runs/${run}/trace?format=pdf`, ...invalid },
  { name: 'an unknown part', request: `GET ${base}/flow-runs/${run}/output?part=input`, ...invalid },
  { name: 'a cursor of another list', request: `GET ${base}/flow-runs/${run}/tasks?cursor=abc`, ...invalid },
  { name: 'an unknown status', request: `GET ${base}/flow-runs?status=done`, ...invalid },
  { name: 'runs of a flow that is no id', request: `GET ${base}/flow-runs?flow_id=taken`, ...invalid },
  {
    name: 'a Last-Event-ID that is no number',
    request: `GET ${base}/flow-runs/${run}/events`,
    headers: { 'last-event-id': 'x' },
    ...invalid,
  },
]

refuses(kit, admin, rows)
