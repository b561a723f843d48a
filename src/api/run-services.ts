import type { AgentWrite } from '../agents/agents.ts'
import type { Decide } from '../flows/recommend-with-model.ts'
import type { FlowStarter } from '../flows/start-together.ts'
import type { Journal } from '../journal/append.ts'
import type { Hub, LiveText } from '../journal/hub.ts'
import type { AppFunction } from '../kernel/app.ts'
import type { ObjectWriter } from '../objects/write-objects.ts'
import type { CachedLibrary } from '../prompts/library.ts'
import type { ShippedPrompts } from '../prompts/shipped-prompts.ts'
import type { RunStarter } from '../runs/start-together.ts'
import type { RunWorker } from '../runs/worker.ts'
import type { Mcp } from '../tools/mcp.ts'
import type { ToolRegistry } from '../tools/registry.ts'

/** The services that the routes of flows need. */
export interface FlowServices {
  functions: ReadonlyMap<string, AppFunction>
  /** The most leaves under way at once in a run that was started without a limit of its own. */
  leafLimit: number
  /** True where this process does not work on flows: the commit itself tells the processes that do. */
  isAnnounced: boolean
  /** Called when flow runs became ready in the database. */
  onReady: () => void
  /** Starts a flow run; starts of the same moment share a commit. */
  start: FlowStarter['start']
  decide: Decide
}

/** The organisation, as the routes of tasks and agents need it. */
export interface OrgServices {
  /** True where this process takes up no tasks: the commit itself tells the processes that do. */
  isAnnounced: boolean
  /** Called after a commit that gave an agent of the project a task, and told so where `isAnnounced` holds. */
  arrived: (projectId: string) => void
  /** Called after a commit that let agents of the project work again, or changed their tasks. */
  poke: (projectId: string) => void
  /** Called after a commit that changed the settings of a project. */
  sweep: () => void
}

/** The services that the routes of prompts need. */
export interface PromptServices {
  shipped: ShippedPrompts
  /** Called after the commit of a change: this process reads the prompt anew. */
  forget: CachedLibrary['forget']
  /** SYSTEM_VARIANT. */
  systemVariant: string | null
}

/** The services that the routes of agents, tasks and runs need from their process; wired in bin/. */
export interface RunServices {
  journal: Journal
  hub: Hub
  /** The text so far of a step under way in this process. */
  soFar: (runId: string) => LiveText | null
  /** The texts so far of the sub-runs' steps under way in this process. */
  soFarBelow?: (runId: string) => LiveText[]
  /** The rules for every write of an agent, through whichever route. */
  agentRules: Omit<AgentWrite, 'actor'>
  starter: RunStarter
  /** The one write path of the graph. */
  writer: ObjectWriter
  /** Called when a provider was changed or deleted through this process. */
  onProvider?: (name: string) => void
  mcp: Mcp
  /** The tools that agents may name. */
  tools: Pick<ToolRegistry, 'list' | 'check'>
  prompts: PromptServices
  flows: FlowServices
  org: OrgServices
  /** Called when runs became ready in the database, so that a worker takes them. */
  onReady: () => void
  /** Called after the commit that set or released the off switch of a project. */
  onHalt: (projectId: string, isHalted: boolean) => Promise<void>
  /** Called for every deleted project, through whichever process it was deleted. */
  hearDeleted?: RunWorker['hearDeleted']
  /** The time a trigger waits for its run before it answers with the run as it stands. */
  waitMs?: number
  /** The time a cancel waits for the run to have stopped. */
  cancelWaitMs?: number
  /** The interval at which a stream without news sends a keep-alive. */
  heartbeatMs?: number
  /** The interval at which a stream checks that its reader may still read. */
  recheckMs?: number
}
