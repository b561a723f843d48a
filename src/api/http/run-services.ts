import type { AgentWrite } from '../../agents/agents.ts'
import type { FlowStarter } from '../../flows/execution/flow-starter.ts'
import type { Patterns } from '../../flows/machine/pattern.ts'
import type { Decide } from '../../flows/recommend/recommend-with-model.ts'
import type { Hub, LiveText } from '../../journal/hub.ts'
import type { Journal } from '../../journal/journal.ts'
import type { AppFunction } from '../../kernel/app.ts'
import type { TestProvider } from '../../models/test-provider.ts'
import type { ObjectWriter } from '../../objects/write-objects.ts'
import type { CachedLibrary } from '../../prompts/library.ts'
import type { ShippedPrompts } from '../../prompts/shipped-prompts.ts'
import type { RunStarter } from '../../runs/run-starter.ts'
import type { RunWorker } from '../../runs/worker.ts'
import type { Mcp } from '../../tools/mcp.ts'
import type { ToolRegistry } from '../../tools/registry.ts'

export interface FlowServices {
  patterns: Patterns
  functions: ReadonlyMap<string, AppFunction>
  /** The most leaves under way at once in a run that was started without a limit of its own. */
  leafLimit: number
  /** True if this process does not work on flows: the commit itself notifies the processes that do. */
  isAnnounced: boolean
  /** Called when flow runs became ready in the database. */
  onReady: () => void
  start: FlowStarter['start']
  decide: Decide
}

export interface OrgServices {
  /** True if this process takes up no tasks: the commit itself notifies the processes that do. */
  isAnnounced: boolean
  /** Called after a commit that gave an agent a task. `isAnnounced`: the commit notified the other processes. */
  arrived: (projectId: string) => void
  /** Called after a commit that let agents of the project work again, or changed their tasks. */
  poke: (projectId: string) => void
  /** Called after a commit that changed the settings of a project. */
  sweep: () => void
}

export interface PromptServices {
  shipped: ShippedPrompts
  /** Called after the commit of a change: this process reads the prompt anew. */
  forget: CachedLibrary['forget']
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
  /** The rules for every write of an agent, on all routes. */
  agentRules: Omit<AgentWrite, 'actor'>
  starter: RunStarter
  /** The one write path of the graph. */
  writer: ObjectWriter
  /** Makes one small call to a provider. */
  testProvider: TestProvider
  /** Called when a provider was changed or deleted through this process. */
  onProvider?: (name: string) => void
  mcp: Mcp
  tools: Pick<ToolRegistry, 'list' | 'check' | 'resolve'>
  prompts: PromptServices
  flows: FlowServices
  org: OrgServices
  /** Called when runs became ready in the database, so that a worker takes them. */
  onReady: () => void
  /** Called after the commit that set or released the off switch of a project. */
  onHalt: (projectId: string, isHalted: boolean) => Promise<void>
  /** Called for every deleted project, also if another process deleted it. */
  hearDeleted?: RunWorker['hearDeleted']
  /** The time that a trigger waits for its run before it answers with the run as it stands. */
  waitMs?: number
  /** The time that a cancel waits for the run to stop. */
  cancelWaitMs?: number
  /** The interval at which a stream without news sends a keep-alive. */
  heartbeatMs?: number
  /** The interval at which a stream checks that its reader may still read. */
  recheckMs?: number
}
