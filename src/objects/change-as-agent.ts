import { recordAudit } from '../audit/record.ts'
import type { Db } from '../db/pool.ts'
import type { GraphChange } from '../kernel/object.ts'
import { capabilityProblem, type Rights } from '../kernel/rights.ts'
import type { SuggestedChange } from '../kernel/task.ts'
import { type Author, byAgent } from './author.ts'
import { findObject } from './objects.ts'
import { endTypes, relate } from './relationships.ts'
import { suggestionFor } from './suggested-change.ts'
import { type ObjectWriter, TOO_LARGE_PROBLEM } from './write-objects.ts'

export interface AgentRequest {
  projectId: string
  agentId: string
  runId: string
  /** Null if the agent is deleted, and so may do nothing. */
  rights: Rights | null
  depth: number
  change: GraphChange
  /** The agent's choice in hybrid mode. */
  apply: 'execute' | 'suggest' | null
  reasoning: string
  /** The person who approved the call that makes the change; null if nobody was asked. */
  approvedBy: string | null
}

/** Makes the task in which people decide; returns its id. */
export type Suggest = (tx: Db, change: SuggestedChange, request: AgentRequest) => Promise<string>

/** The outcome of a change for the model: a result, or an error that the model can act on. */
export interface AgentOutcome {
  result: Record<string, unknown>
  isError: boolean
  blocked: 'capability' | null
  started: number
}

/**
 * Carries out an agent's change of the graph within its rights: refused if the capabilities do not allow it, put before
 * people if the agent may only suggest, otherwise written by everybody's write path.
 */
export async function changeAsAgent(
  tx: Db,
  { writer, suggest }: { writer: ObjectWriter; suggest: Suggest },
  request: AgentRequest,
): Promise<AgentOutcome> {
  const { change, rights, projectId } = request
  if (rights === null) return refuse(tx, request, 'This agent was deleted.', [])
  const mayNever = capabilityProblem(rights.capabilities, change.op, [])
  if (mayNever) return refuse(tx, request, mayNever, [])
  const types = await typesOf(tx, projectId, change)
  if (types === null) return failed(MISSING)
  const problem = capabilityProblem(rights.capabilities, change.op, types)
  if (problem) return refuse(tx, request, problem, types)
  if (!isSuggested(rights, request)) return carryOut(tx, writer, request)
  if (request.reasoning.trim() === '')
    return failed('You may only suggest this: say in "reasoning" why it should be done.')
  return putForward(tx, suggest, request)
}

const MISSING = 'There is no such object in this project, or it was deleted.'

const isSuggested = (rights: Rights, { apply }: AgentRequest): boolean =>
  rights.mode === 'suggest' || (rights.mode === 'hybrid' && apply !== 'execute')

/** The types of all objects that the change touches; null if one of them does not exist. */
async function typesOf(tx: Db, projectId: string, change: GraphChange): Promise<string[] | null> {
  switch (change.op) {
    case 'create':
      return [change.type]
    case 'relate':
      return endTypes(tx, projectId, [change.fromId, change.toId])
    case 'update':
    case 'delete': {
      const object = await findObject(tx, projectId, change.id)
      return object && object.deleted_at === null ? [object.type] : null
    }
  }
}

async function refuse(tx: Db, request: AgentRequest, error: string, types: string[]): Promise<AgentOutcome> {
  const { agentId, runId, projectId, change, depth } = request
  await recordAudit(tx, {
    action: 'capability.refused',
    actor: byAgent(agentId, { runId, depth }).actor,
    projectId,
    targetType: 'object',
    targetId: 'id' in change ? change.id : null,
    details: { run_id: runId, op: change.op, types: change.op === 'create' ? [change.type] : types, reason: error },
  })
  return { result: { error }, isError: true, blocked: 'capability', started: 0 }
}

async function putForward(tx: Db, suggest: Suggest, request: AgentRequest): Promise<AgentOutcome> {
  const suggestion = await suggestionFor(tx, request.projectId, request.change)
  if ('problem' in suggestion) return failed(suggestion.problem)
  const taskId = await suggest(tx, suggestion, request)
  const message = 'Nothing was changed. People decide about this suggestion; go on without waiting for them.'
  return done({ suggested: true, task_id: taskId, message })
}

async function carryOut(tx: Db, writer: ObjectWriter, request: AgentRequest): Promise<AgentOutcome> {
  const { projectId, change, agentId, runId, depth, approvedBy } = request
  const author: Author = byAgent(agentId, { runId, depth, approvedBy })
  if (change.op === 'relate') {
    const outcome = await relate(tx, { projectId, change, author })
    if (outcome.kind === 'related') return done({ ...outcome.relationship })
    return failed(outcome.kind === 'taken' ? 'These objects are related so already.' : MISSING)
  }
  const outcome = await writer.writeIn(tx, { projectId, change, author })
  switch (outcome.kind) {
    case 'written':
      return done({ ...outcome.object }, outcome.started)
    case 'unchanged':
      return done({ ...outcome.object, unchanged: true })
    case 'missing':
      return failed(MISSING)
    case 'moved':
      return failed(`The object is at version ${outcome.version} by now. Read it again before you change it.`)
    case 'too_large':
      return failed(TOO_LARGE_PROBLEM)
    case 'taken':
      return failed(
        `There is an object of this type and key already${outcome.id === null ? '' : `, with the id ${outcome.id}`}. Update that one, or use another key.`,
      )
  }
}

const done = (result: Record<string, unknown>, started = 0): AgentOutcome => ({
  result,
  isError: false,
  blocked: null,
  started,
})

const failed = (error: string): AgentOutcome => ({ result: { error }, isError: true, blocked: null, started: 0 })
