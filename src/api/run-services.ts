import type { AgentWrite } from '../agents/agents.ts'
import type { Decide } from '../flows/recommend-with-model.ts'
import type { FlowStarter } from '../flows/start-together.ts'
import type { Journal } from '../journal/append.ts'
import type { Hub, LiveText } from '../journal/hub.ts'
import type { AppFunction } from '../kernel/app.ts'
import type { ObjectWriter } from '../objects/write-objects.ts'
import type { RunStarter } from '../runs/start-together.ts'
import type { RunWorker } from '../runs/worker.ts'
import type { Mcp } from '../tools/mcp.ts'
import type { ToolRegistry } from '../tools/registry.ts'

/** What the routes of flows need. */
export interface FlowServices {
  functions: ReadonlyMap<string, AppFunction>
  /** The most leaves under way in a run that was started without a word about it. */
  leafLimit: number
  /** Nobody here works on flows: the commit itself tells the processes that do. */
  isAnnounced: boolean
  /** Flow runs became ready in the database. */
  onReady: () => void
  /** Starts one by itself, together with others of the moment. */
  start: FlowStarter['start']
  decide: Decide
}

/** What the routes of agents, tasks and runs need from the process they are served by; wired in bin/. */
export interface RunServices {
  journal: Journal
  hub: Hub
  /** The text so far of a step under way in this process. */
  soFar: (runId: string) => LiveText | null
  /** The same of its sub-runs. */
  soFarBelow?: (runId: string) => LiveText[]
  /** What holds for every write of an agent, whoever makes it. */
  agentRules: Omit<AgentWrite, 'actor'>
  starter: RunStarter
  /** The one write path of the graph. */
  writer: ObjectWriter
  /** A provider was changed or deleted through this process. */
  onProvider?: (name: string) => void
  mcp: Mcp
  /** What agents may name. */
  tools: Pick<ToolRegistry, 'list'>
  flows: FlowServices
  /** Runs became ready in the database: somebody may take them. */
  onReady: () => void
  /** The off switch of a project was set or released; called after the commit. */
  onHalt: (projectId: string, isHalted: boolean) => Promise<void>
  /** Tells of projects that were deleted, through whichever process. */
  hearDeleted?: RunWorker['hearDeleted']
  /** How long a trigger waits for its run before it answers with the run as it stands. */
  waitMs?: number
  /** How long a cancel waits for the run to have stopped. */
  cancelWaitMs?: number
  /** How often a stream without news says that it is alive. */
  heartbeatMs?: number
  /** How often a stream asks whether its reader may still read. */
  recheckMs?: number
}
