// Bad input to objects, relationships, suggestions and the processing log.
import { createTestApp } from '../../../test/kit/app.ts'
import { type BadRequest, conflict, invalid, json, missing, refuses } from '../../../test/kit/bad-requests.ts'
import { createGraph } from '../../../test/kit/graph.ts'
import { newId } from '../../kernel/id.ts'

const kit = await createTestApp()
const project = await kit.createProject()
const admin = (await kit.createKey(project.id, 'admin')).key
const base = `/api/projects/${project.id}`
const graph = await createGraph(kit, project.id)
const gone = (await kit.call<{ id: string }>(`POST ${base}/objects`, { body: { type: 'Gone', properties: {} } })).body
  .id
await kit.call(`DELETE ${base}/objects/${gone}`)
const work = (await kit.call<{ id: string }>(`POST ${base}/tasks`, { body: { title: 'x' } })).body.id

const objects = `POST ${base}/objects`
const change = `PATCH ${base}/objects/${graph.objectId}`
const relationships = `POST ${base}/relationships`
const edge = { type: 'knows', from_id: graph.objectId, to_id: graph.otherId }
const good = { type: 'T', properties: {} }
const log = `${base}/agents/${graph.reactorId}/processing-log`

const rows: BadRequest[] = [
  { name: 'an object without a type', request: objects, body: { properties: {} }, ...invalid },
  { name: 'an object without properties', request: objects, body: { type: 'T' }, ...invalid },
  { name: 'an object without a body', request: objects, ...invalid },
  { name: '"*" as a type', request: objects, body: { ...good, type: '*' }, ...invalid },
  { name: 'a blank type', request: objects, body: { ...good, type: '  ' }, ...invalid },
  { name: 'a type with a line break', request: objects, body: { ...good, type: 'a\nb' }, ...invalid },
  { name: 'a type of 201 characters', request: objects, body: { ...good, type: 'x'.repeat(201) }, ...invalid },
  { name: 'a type that is a number', request: objects, body: { ...good, type: 7 }, ...invalid },
  { name: 'an empty key', request: objects, body: { ...good, key: '' }, ...invalid },
  { name: 'a key that is a number', request: objects, body: { ...good, key: 7 }, ...invalid },
  { name: 'a key of 500 large characters', request: objects, body: { ...good, key: '𠀀'.repeat(500) }, ...invalid },
  { name: 'properties that are a list', request: objects, body: { ...good, properties: [] }, ...invalid },
  { name: 'properties that are null', request: objects, body: { ...good, properties: null }, ...invalid },
  { name: 'properties that are a text', request: objects, body: { ...good, properties: 'x' }, ...invalid },
  { name: 'an id of one’s own', request: objects, body: { ...good, id: newId() }, ...invalid },
  { name: 'a version of one’s own', request: objects, body: { ...good, version: 7 }, ...invalid },
  { name: 'an author of one’s own', request: objects, body: { ...good, actor_type: 'agent' }, ...invalid },
  {
    name: 'a NUL in a property',
    request: objects,
    body: '{"type":"T","properties":{"a":"\\u0000"}}',
    headers: json,
    ...invalid,
  },
  {
    name: 'half a surrogate pair in a property',
    request: objects,
    body: '{"type":"T","properties":{"a":"\\ud800"}}',
    headers: json,
    ...invalid,
  },
  {
    name: 'a property that is there twice',
    request: objects,
    body: '{"type":"T","properties":{"a":1,"a":2}}',
    headers: json,
    ...invalid,
  },
  {
    name: 'a type and key that are taken',
    request: objects,
    body: { ...good, type: 'Watched', key: 'k' },
    ...conflict,
  },
  { name: 'an unknown object', request: `GET ${base}/objects/${newId()}`, ...missing },
  { name: 'a malformed object', request: `GET ${base}/objects/1`, ...missing },
  { name: 'a search for an empty text', request: `GET ${base}/objects?q=`, ...invalid },
  { name: 'a list of an empty type', request: `GET ${base}/objects?type=`, ...invalid },
  { name: 'an unknown filter', request: `GET ${base}/objects?color=red`, ...invalid },
  { name: 'a made-up cursor of objects', request: `GET ${base}/objects?cursor=abc`, ...invalid },
  {
    name: 'a made-up cursor of a history',
    request: `GET ${base}/objects/${graph.objectId}/history?cursor=x`,
    ...invalid,
  },
  { name: 'a change without properties', request: change, body: {}, ...invalid },
  { name: 'a change of the type', request: change, body: { properties: {}, type: 'T' }, ...invalid },
  { name: 'a change of the key', request: change, body: { properties: {}, key: 'l' }, ...invalid },
  { name: 'version 0 expected', request: change, body: { properties: {}, expected_version: 0 }, ...invalid },
  { name: 'half a version expected', request: change, body: { properties: {}, expected_version: 1.5 }, ...invalid },
  {
    name: 'another version expected',
    request: change,
    body: { properties: { a: 1 }, expected_version: 2 },
    ...conflict,
  },
  {
    name: 'a change of a deleted object',
    request: `PATCH ${base}/objects/${gone}`,
    body: { properties: { a: 1 } },
    ...missing,
  },
  { name: 'a second delete', request: `DELETE ${base}/objects/${gone}`, ...missing },
  { name: 'a relationship without ends', request: relationships, body: { type: 'knows' }, ...invalid },
  { name: 'a relationship without a type', request: relationships, body: { ...edge, type: undefined }, ...invalid },
  {
    name: 'a relationship to an unknown object',
    request: relationships,
    body: { ...edge, to_id: newId() },
    ...missing,
  },
  {
    name: 'a relationship from a deleted object',
    request: relationships,
    body: { ...edge, from_id: gone },
    ...missing,
  },
  { name: 'a malformed end', request: relationships, body: { ...edge, from_id: 'x' }, ...invalid },
  { name: 'the same relationship again', request: relationships, body: edge, ...conflict },
  { name: 'an unknown edge', request: `DELETE ${base}/relationships/${newId()}`, ...missing },
  { name: 'approving a task that is no suggestion', request: `POST ${base}/tasks/${work}/approve`, ...conflict },
  { name: 'rejecting a task that is no suggestion', request: `POST ${base}/tasks/${work}/reject`, ...conflict },
  {
    name: 'approving with changes of one’s own',
    request: `POST ${base}/tasks/${graph.suggestionId}/approve`,
    body: { changes: [] },
    ...invalid,
  },
  {
    name: 'rejecting with a number as the reason',
    request: `POST ${base}/tasks/${graph.suggestionId}/reject`,
    body: { reason: 7 },
    ...invalid,
  },
  { name: 'approving nothing', request: `POST ${base}/tasks/approve`, body: { ids: [] }, ...invalid },
  { name: 'approving a malformed id', request: `POST ${base}/tasks/approve`, body: { ids: ['x'] }, ...invalid },
  { name: 'approving an unknown task', request: `POST ${base}/tasks/${newId()}/approve`, ...missing },
  { name: 'an unknown status of the log', request: `GET ${log}?status=done`, ...invalid },
  { name: 'retrying an unknown entry', request: `POST ${log}/${newId()}/retry`, ...missing },
  { name: 'retrying a malformed entry', request: `POST ${log}/1/retry`, ...missing },
]

refuses(kit, admin, rows)
