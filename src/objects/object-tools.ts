// The tools with which agents act on the graph. The rights of the run decide on a call (change-as-agent.ts).
import { z } from 'zod'
import type { Db } from '../db/pool.ts'
import { idField, jsonObject } from '../kernel/fields.ts'
import { type GraphChange, objectInput, objectKeyField, objectTypeField, relationshipInput } from '../kernel/object.ts'
import type { ExecutionMode } from '../kernel/rights.ts'
import type { CallTool, WriteTool } from '../kernel/tool.ts'
import { zodArguments } from '../tools/arguments.ts'
import { findObject, listObjects } from './objects.ts'

const reasoningField = z.string().min(1).max(20_000).regex(/\S/, 'must not be blank')

/** Arguments that every change of the graph takes in each mode, beside the tool's own. */
const beside = {
  execute: { reasoning: reasoningField.optional().describe('Why you make this change.') },
  suggest: {
    reasoning: reasoningField.describe('Why this change should be made, for the people who decide about it.'),
  },
  hybrid: {
    apply: z
      .enum(['execute', 'suggest'])
      .describe('"execute" changes the graph at once; "suggest" puts the change before people, who decide.'),
    reasoning: reasoningField.optional().describe('Why you make this change. Required when you suggest.'),
  },
} as const

const changes = {
  object_create: {
    description: `Creates an object in the project's graph.

- Search first: do not create an object that exists. A "key" is your own name for the object, unique within its type.
- Returns the object with its id and version.`,
    own: { ...objectInput.shape, key: objectKeyField.optional() },
    toChange: (args) => ({ op: 'create', type: args.type, key: args.key ?? null, properties: args.properties }),
  } satisfies Kind<{ type: string; key?: string | undefined; properties: Record<string, unknown> }>,
  object_update: {
    description: `Changes properties of an object. The properties you name are replaced, the others stay.

- Give "expected_version" if your change relies on what you read; if somebody changed the object since, you are told.
- Returns the object as it is after the change.`,
    own: { id: idField, properties: jsonObject, expected_version: z.int().min(1).optional() },
    toChange: (args) => ({
      op: 'update',
      id: args.id,
      properties: args.properties,
      expectedVersion: args.expected_version ?? null,
    }),
  } satisfies Kind<{ id: string; properties: Record<string, unknown>; expected_version?: number | undefined }>,
  object_delete: {
    description: `Deletes an object and the relationships that lead to and from it. Its history stays.`,
    own: { id: idField },
    toChange: (args) => ({ op: 'delete', id: args.id, expectedVersion: null }),
  } satisfies Kind<{ id: string }>,
  relationship_create: {
    description: `Relates two objects: from one to the other, with a type such as "works_at".

- Both objects must exist. The same two objects are related once per type and direction.`,
    own: relationshipInput.shape,
    toChange: (args) => ({
      op: 'relate',
      type: args.type,
      fromId: args.from_id,
      toId: args.to_id,
      properties: args.properties ?? {},
    }),
  } satisfies Kind<z.infer<typeof relationshipInput>>,
} as const

interface Kind<Args> {
  description: string
  own: z.ZodRawShape
  toChange: (args: Args) => GraphChange
}

type ChangeName = keyof typeof changes
const modes: readonly ExecutionMode[] = ['execute', 'suggest', 'hybrid']

export const graphTools: readonly WriteTool[] = Object.entries(changes).map(([name, { description, own }]) => {
  const variants = new Map<ExecutionMode, WriteTool>()
  const inMode = (mode: ExecutionMode): WriteTool => variants.get(mode) ?? tool
  for (const mode of modes) {
    const fields: z.ZodRawShape = { ...own, ...beside[mode] }
    const schema = z.strictObject(fields).superRefine((args, issues) => {
      if (mode !== 'hybrid' || args.apply !== 'suggest' || args.reasoning !== undefined) return
      issues.addIssue({ code: 'custom', path: ['reasoning'], message: 'is required when you suggest' })
    })
    const text =
      mode === 'suggest' ? `${description}\n- You may only suggest: people decide about the change.` : description
    variants.set(mode, { kind: 'write', name, description: text, ...zodArguments(schema), inMode })
  }
  const tool = inMode('execute')
  return tool
})

export const isGraphTool = (name: string): name is ChangeName => name in changes

export interface ParsedChange {
  change: GraphChange
  apply: 'execute' | 'suggest' | null
  reasoning: string
}

/** Takes arguments that the tool's own schema has accepted. */
export function parseChange(name: ChangeName, args: unknown): ParsedChange {
  const { apply = null, reasoning = '' } = args as Partial<ParsedChange> // parsed by the tool's schema
  const { toChange } = changes[name] as Kind<unknown> // each function takes its own schema's type
  return { change: toChange(args), apply, reasoning }
}

const getArguments = z.strictObject({ id: idField })
const searchArguments = z.strictObject({
  type: objectTypeField.optional().describe('Only objects of this type.'),
  q: z.string().max(500).optional().describe('Words that the object holds; beginnings of words will do.'),
  limit: z.int().min(1).max(200).optional().describe('The most objects to return, newest first; 20 by default.'),
})

export function createGraphReaders(db: Db): CallTool[] {
  const reader = { kind: 'call', effect: 'readonly', isPoller: false, timeoutMs: null } as const
  return [
    {
      ...reader,
      name: 'object_get',
      description: 'Reads an object of the graph by its id: type, key, properties and version.',
      ...zodArguments(getArguments),
      execute: async (args, { project_id }) => {
        const object = await findObject(db, project_id, getArguments.parse(args).id)
        if (!object) throw new Error('There is no such object in this project.')
        return object
      },
    },
    {
      ...reader,
      name: 'object_search',
      description: 'Finds objects of the graph by type and by the words in their key and properties, newest first.',
      ...zodArguments(searchArguments),
      execute: async (args, { project_id }) => {
        const { type, q, limit = 20 } = searchArguments.parse(args)
        const { items, next_cursor } = await listObjects(db, project_id, { type, q: q || undefined }, { limit })
        return { items, has_more: next_cursor !== null }
      },
    },
  ]
}
