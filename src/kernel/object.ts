import { z } from 'zod'
import { idField, instantField, jsonObject, nameField } from './fields.ts'

/** Types are compared exactly. In a list of types `*` stands for all of them, so no object has this type. */
export const objectTypeField = nameField.refine((type) => type !== '*', 'must not be "*", which means all types')

/** The bound lets type and key together fit into one entry of an index, whatever their characters. */
export const objectKeyField = z
  .string()
  .min(1)
  .max(500)
  .regex(/^[^\p{Cc}]*$/u, 'must not hold control characters')
  .refine((key) => new TextEncoder().encode(key).length <= 1_600, 'must take 1,600 bytes at most')

const authorTypes = ['user', 'agent'] as const
const versionField = z.int().min(1).max(2_147_483_647)

export const objectSchema = z.strictObject({
  id: idField,
  type: z.string(),
  key: z.string().nullable(),
  properties: jsonObject,
  version: z.int(),
  actor_type: z.enum(authorTypes).describe('The author of the newest version.'),
  actor_id: idField
    .nullable()
    .describe("The person's or agent's id, else the API key's or the instance's; null if nobody acted."),
  created_at: instantField,
  updated_at: instantField,
  deleted_at: instantField.nullable(),
})
export type GraphObject = z.infer<typeof objectSchema>

export const objectInput = z.strictObject({
  type: objectTypeField,
  key: objectKeyField.nullish(),
  properties: jsonObject,
})

export const objectByKey = z.strictObject({
  type: objectTypeField,
  key: objectKeyField,
  properties: jsonObject,
})

/** The given properties replace those of the same name; the others stay. */
export const objectPatch = z.strictObject({
  properties: jsonObject,
  expected_version: versionField.optional(),
})

export const objectVersionSchema = z.strictObject({
  version: z.int(),
  op: z.enum(['create', 'update', 'delete']),
  properties: jsonObject,
  actor_type: z.enum(authorTypes),
  actor_id: idField.nullable(),
  run_id: idField.nullable(),
  approved_by: idField.nullable(),
  at: instantField,
})
export type ObjectVersion = z.infer<typeof objectVersionSchema>

export const relationshipInput = z.strictObject({
  type: objectTypeField,
  from_id: idField,
  to_id: idField,
  properties: jsonObject.optional(),
})

export const relationshipSchema = z.strictObject({
  id: idField,
  type: z.string(),
  from_id: idField,
  to_id: idField,
  properties: jsonObject,
  actor_type: z.enum(authorTypes),
  actor_id: idField.nullable(),
  run_id: idField.nullable(),
  approved_by: idField.nullable(),
  created_at: instantField,
})
export type Relationship = z.infer<typeof relationshipSchema>

export type GraphChange =
  | { op: 'create'; type: string; key: string | null; properties: Record<string, unknown> }
  | { op: 'update'; id: string; properties: Record<string, unknown>; expectedVersion: number | null }
  | { op: 'delete'; id: string; expectedVersion: number | null }
  | { op: 'relate'; type: string; fromId: string; toId: string; properties: Record<string, unknown> }

const eventTypes = ['created', 'updated', 'deleted'] as const
export const processingStatuses = ['pending', 'processing', 'completed', 'failed', 'abandoned', 'skipped'] as const

/** The work that a reacting agent was given, and its outcome. */
export const processingEntrySchema = z.strictObject({
  id: idField,
  agent_id: idField,
  graph_object_id: idField,
  object_version: z.int(),
  event_type: z.enum(eventTypes),
  status: z.enum(processingStatuses),
  run_id: idField.nullable(),
  error_message: z.string().nullable(),
  created_at: instantField,
  started_at: instantField.nullable(),
  completed_at: instantField.nullable(),
})
export type ProcessingEntry = z.infer<typeof processingEntrySchema>
