// Executes the run of a supervisor: its graph, from the last checkpoint on. A run that waits for a specialist or for a
// person holds no slot.
import { AsyncLocalStorage } from 'node:async_hooks'
import { idFrom } from '../kernel/id.ts'
import { putNewest } from '../kernel/put-newest.ts'
import { type GraphState, newAgentState, newSupervisorState, type SupervisorState } from '../kernel/supervisor.ts'
import { leave, runCompleted, stopped, waiting } from '../runs/end.ts'
import { heedSwitches } from '../runs/heed-switches.ts'
import { append, type OwnedRun, RunLost } from '../runs/owned-run.ts'
import { park } from '../runs/park.ts'
import { RunLeft } from './ask.ts'
import type { Checkpoints } from './checkpoints/checkpoints.ts'
import { buildGraph, type Graph, type Nodes } from './graph.ts'
import { createNodes, finalText, isAsked, partOf, questionText } from './nodes.ts'
import { tokensOf } from './rules.ts'

const MOST_GRAPHS = 100

/**
 * LangGraph keeps the running graph in the asynchronous context. A run that a node starts would inherit it, and count
 * as a part of the graph. So nodes and graphs are executed in an empty context.
 */
const outside = AsyncLocalStorage.snapshot()

export function createSupervise({ checkpoints }: { checkpoints: Checkpoints }): (owned: OwnedRun) => Promise<void> {
  /** The current executions in this process. A run that was lost and claimed again has two for a while. */
  const ownedRuns = new Map<string, OwnedRun>()
  const graphs = new Map<string, Promise<Graph>>()
  const within = createNodes((execution) => {
    const owned = ownedRuns.get(execution)
    if (!owned) throw new RunLost('the execution of a graph is over')
    return owned
  })
  const nodes: Nodes = {
    supervisor: (...given) => outside(within.supervisor, ...given),
    specialist: (...given) => outside(within.specialist, ...given),
    finalizer: (...given) => outside(within.finalizer, ...given),
    escalation: (...given) => outside(within.escalation, ...given),
  }

  return async (owned) => {
    const execution = executionOf(owned)
    ownedRuns.set(execution, owned)
    try {
      await outside(async () => execute(owned, await graphOf(owned)))
    } catch (error) {
      if (!(error instanceof RunLeft)) throw error
    } finally {
      ownedRuns.delete(execution)
    }
  }

  function graphOf(owned: OwnedRun): Promise<Graph> {
    const { project_id: projectId } = owned.run
    const names = partOf(owned).config.specialists.map(({ name }) => name)
    const key = `${projectId} ${names.join(' ')}`
    const known = graphs.get(key)
    if (known) return known
    const made = checkpoints.saverFor(projectId).then((saver) => buildGraph(names, saver, nodes))
    putNewest(graphs, key, made, MOST_GRAPHS)
    made.catch(() => graphs.delete(key))
    return made
  }
}

/** The fence of a run's claim names the execution of its graph. */
const executionOf = ({ run }: OwnedRun): string => `${run.id} ${run.fence}`

async function execute(owned: OwnedRun, graph: Graph): Promise<void> {
  const { run, settings } = owned
  // The state is read once: later steps of this process are newer than any checkpoint, even if another clock is ahead.
  let read = await graph.read(run.id)
  for (;;) {
    if ((await heedSwitches(owned)) === 'left') return
    let input: Parameters<Graph['run']>[1] = null
    if (!read) input = firstState(owned)
    else if (read.isOver) {
      const { supervisor, agent } = read.state
      if (supervisor.status === 'DONE') return void (await leave(owned, runCompleted(finalText(owned))))
      // Without a question after the last answer, the answer is journalled and the graph has not started again yet.
      if (isAsked(owned) && !(await takeAnswer(owned, supervisor))) return waitForPerson(owned, supervisor)
      const { active_agent: _, ...rest } = supervisor
      input = { supervisor: { ...rest, status: 'RUNNING' }, agent }
    }
    const rounds = settings.supervisor_max_rounds
    const { isWaiting, ...state } = await graph.run({ threadId: run.id, execution: executionOf(owned) }, input, rounds)
    if (isWaiting) {
      await park(owned, { children: true, human: false })
      owned.deps.onReady()
      return
    }
    read = { state, isOver: true }
  }
}

const firstState = (owned: OwnedRun): GraphState => ({
  supervisor: newSupervisorState(owned.run.id, partOf(owned).context.context_id),
  agent: newAgentState(),
})

const escalationId = ({ run, state }: OwnedRun): string => idFrom(`${run.id} escalation ${state.personAnswers.length}`)

async function takeAnswer(owned: OwnedRun, { history }: SupervisorState): Promise<boolean> {
  const taskId = escalationId(owned)
  const given = (await owned.deps.askHuman.answers([taskId])).get(taskId)
  if (!given) return false
  const answer = wordsOf(given)
  const tokens = await tokensOf(owned.deps.pool, owned.run.id)
  const data = { task_id: taskId, answer, summaries: history.length, tokens }
  await append(owned, [{ kind: 'supervisor.answered', data }])
  return true
}

function wordsOf({ answer, isRefused }: { answer: unknown; isRefused: boolean }): string {
  if (isRefused) return 'The people in charge declined to answer.'
  const words = typeof answer === 'string' ? answer : JSON.stringify(answer)
  return words.trim() === '' ? 'The question was marked as done, without words.' : words
}

/** People are asked once. An eval asks no people, and its run ends here. */
async function waitForPerson(owned: OwnedRun, state: SupervisorState): Promise<void> {
  const { deps, run, agent } = owned
  const question = questionText(owned, state)
  if (run.trigger.eval_id !== undefined) return void (await leave(owned, stopped('human', question)))
  const taskId = escalationId(owned)
  await deps.askHuman.ask({ taskId, projectId: run.project_id, runId: run.id, agentId: agent.id, question })
  const end = waiting('human', [], run.signals)
  await append(owned, [end.event], { set: { ...end.set, summary: question } })
}
