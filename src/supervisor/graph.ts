// The graph of a supervisor system, on LangGraph: supervisor, one node for each specialist, finalizer and
// hitl_escalation. Every edge but the last ones asks the routing contract. A node writes only its own channel.
import type { BaseCheckpointSaver } from '@langchain/langgraph'
import {
  type AgentState,
  agentState,
  agentSummary,
  type GraphState,
  type SupervisorState,
  supervisorState,
} from '../kernel/supervisor.ts'
import { route } from './route.ts'
import type { SpecialistWork } from './specialist.ts'

/** The work of the nodes, for one execution of the graph. Each node gets a copy of the state. */
export interface Nodes {
  supervisor(execution: string, state: SupervisorState): Promise<SupervisorState>
  /** Null if the specialist is still working: the graph stops until a worker claims the run again. */
  specialist(
    execution: string,
    state: Pick<SupervisorState, 'plan' | 'history'>,
    name: string,
  ): Promise<SpecialistWork | null>
  finalizer(execution: string, state: SupervisorState): Promise<void>
  escalation(execution: string, state: SupervisorState): Promise<void>
}

export interface Graph {
  /** Executes the graph until it ends or stops; with null it goes on from its last checkpoint. */
  run(
    thread: { threadId: string; execution: string },
    input: GraphState | null,
    rounds: number,
  ): Promise<GraphState & { isWaiting: boolean }>
  /** The state after the last step; `isOver` is true if no step follows. Null if nothing was executed yet. */
  read(threadId: string): Promise<{ state: GraphState; isOver: boolean } | null>
}

export async function buildGraph(
  specialists: readonly string[],
  checkpointer: BaseCheckpointSaver,
  nodes: Nodes,
): Promise<Graph> {
  const { Annotation, END, interrupt, START, StateGraph } = await import('@langchain/langgraph')
  const State = Annotation.Root({
    [CHANNELS.supervisor]: Annotation<SupervisorState>,
    [CHANNELS.agent]: Annotation<AgentState>,
  })
  const targets = ['supervisor', 'finalizer', 'hitl_escalation', ...specialists] as never[] // LangGraph counts names in types
  const next = (channels: Channels): string => route(channels.supervisor_state)
  const builder = new StateGraph(State)
    .addNode('supervisor', async ({ supervisor_state: state }, config) => ({
      supervisor_state: supervisorState.parse(await nodes.supervisor(executionOf(config), structuredClone(state))),
    }))
    .addNode('finalizer', async ({ supervisor_state: state }, config) => {
      await nodes.finalizer(executionOf(config), structuredClone(state))
      return { supervisor_state: { ...state, status: 'DONE' as const } }
    })
    .addNode('hitl_escalation', async ({ supervisor_state: state }, config) => {
      await nodes.escalation(executionOf(config), structuredClone(state))
      return { supervisor_state: { ...state, status: 'ESCALATE' as const } }
    })
    .addConditionalEdges(START, next, targets)
    .addConditionalEdges('supervisor', next, targets)
    .addEdge('finalizer', END)
    .addEdge('hitl_escalation', END)
  for (const name of specialists) {
    builder
      .addNode(name, async ({ supervisor_state: state }, config) => {
        const { plan, history } = structuredClone(state)
        const work = await nodes.specialist(executionOf(config), { plan, history }, name)
        if (!work) return interrupt({ waits_for: name })
        return { supervisor_state: withSummary(state, work), agent_state: agentState.parse(work.agent) }
      })
      .addConditionalEdges(name as never, next, targets)
  }
  const graph = builder.compile({ checkpointer })
  const configOf = (threadId: string) => ({ configurable: { thread_id: threadId } })

  return {
    run: async ({ threadId, execution }, input, rounds) => {
      const { __interrupt__: interrupts, ...state } = (await graph.invoke(input && toChannels(input), {
        configurable: { thread_id: threadId, execution },
        durability: 'sync',
        // LangGraph's own limit is above our limit, so that ours decides.
        recursionLimit: 2 * rounds + 5,
      })) as Channels & { __interrupt__?: unknown[] } // the channels are those of State
      return { ...fromChannels(state), isWaiting: (interrupts?.length ?? 0) > 0 }
    },
    read: async (threadId) => {
      const { values, next: following, tasks } = await graph.getState(configOf(threadId))
      const state = values as Partial<Channels> // empty before the first checkpoint
      if (!state.supervisor_state || !state.agent_state) return null
      // A process may die after a node's answer was stored and before its checkpoint was. That node is not among the
      // next nodes; its task is still there, and the graph goes on from that task.
      return { state: fromChannels(state as Channels), isOver: following.length === 0 && tasks.length === 0 }
    },
  }
}

/** LangGraph has channels and nodes in one namespace, in which `supervisor` is a node. */
export const CHANNELS = { supervisor: 'supervisor_state', agent: 'agent_state' } as const

interface Channels {
  supervisor_state: SupervisorState
  agent_state: AgentState
}

const toChannels = ({ supervisor, agent }: GraphState): Channels => ({
  supervisor_state: supervisor,
  agent_state: agent,
})

const fromChannels = ({ supervisor_state: supervisor, agent_state: agent }: Channels): GraphState => ({
  supervisor,
  agent,
})

/** The graph adds a specialist's summary to the history here, and the supervisor is asked next. */
function withSummary(state: SupervisorState, { summary }: SpecialistWork): SupervisorState {
  const { active_agent: _, ...rest } = state
  return { ...rest, history: [...state.history, agentSummary.parse(summary)] }
}

function executionOf(config: { configurable?: Record<string, unknown> }): string {
  const execution = config.configurable?.execution
  if (typeof execution !== 'string') throw new Error('a graph was executed without a name for the execution')
  return execution
}
