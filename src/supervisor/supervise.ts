// Executes the run of a supervisor: its graph, from wherever its checkpoints stand. A run that waits for a specialist or
// for a person holds no slot; whoever takes it up next goes on from the last checkpoint.
import { AsyncLocalStorage } from 'node:async_hooks'
import { idFrom } from '../kernel/id.ts'
import { putNewest } from '../kernel/put-newest.ts'
import { type GraphState, newAgentState, newSupervisorState, type SupervisorState } from '../kernel/supervisor.ts'
import { completed, stopped, waiting } from '../runs/end.ts'
import { heedSwitches } from '../runs/execute-run.ts'
import { leave } from '../runs/model-step.ts'
import { park } from '../runs/park.ts'
import { append, RunLost, type Session } from '../runs/session.ts'
import { RunLeft } from './ask.ts'
import type { Checkpoints } from './checkpoints/checkpoints.ts'
import { buildGraph, type Graph, type Nodes } from './graph.ts'
import { createNodes, finalText, isAsked, partOf, questionText } from './nodes.ts'

const MOST_GRAPHS = 100

/**
 * LangGraph keeps the graph under way in the asynchronous context. A run that a node starts would inherit it, and count as
 * a part of that graph. So nodes and graphs are executed in an empty context.
 */
const outside = AsyncLocalStorage.snapshot()

export function createSupervise({ checkpoints }: { checkpoints: Checkpoints }): (session: Session) => Promise<void> {
  /** The executions under way in this process. A run that was lost and claimed again has two for a while. */
  const sessions = new Map<string, Session>()
  const graphs = new Map<string, Promise<Graph>>()
  const within = createNodes((execution) => {
    const session = sessions.get(execution)
    if (!session) throw new RunLost('the execution of a graph is over')
    return session
  })
  const nodes: Nodes = {
    supervisor: (...given) => outside(within.supervisor, ...given),
    specialist: (...given) => outside(within.specialist, ...given),
    finalizer: (...given) => outside(within.finalizer, ...given),
    escalation: (...given) => outside(within.escalation, ...given),
  }

  return async (session) => {
    const execution = executionOf(session)
    sessions.set(execution, session)
    try {
      await outside(async () => execute(session, await graphOf(session)))
    } catch (error) {
      if (!(error instanceof RunLeft)) throw error
    } finally {
      sessions.delete(execution)
    }
  }

  function graphOf(session: Session): Promise<Graph> {
    const { project_id: projectId } = session.run
    const names = partOf(session).config.specialists.map(({ name }) => name)
    const key = `${projectId} ${names.join(' ')}`
    const known = graphs.get(key)
    if (known) return known
    const made = checkpoints.saverFor(projectId).then((saver) => buildGraph(names, saver, nodes))
    putNewest(graphs, key, made, MOST_GRAPHS)
    made.catch(() => graphs.delete(key))
    return made
  }
}

/** Every claim of a run has a fence of its own, and so has the execution of its graph. */
const executionOf = ({ run }: Session): string => `${run.id} ${run.fence}`

async function execute(session: Session, graph: Graph): Promise<void> {
  const { run, settings } = session
  // Read once. What this process executes is newer than any checkpoint, also one of a process whose clock is ahead.
  let read = await graph.read(run.id)
  for (;;) {
    if ((await heedSwitches(session)) === 'left') return
    let input: Parameters<Graph['run']>[1] = null
    if (!read) input = firstState(session)
    else if (read.isOver) {
      const { supervisor, agent } = read.state
      if (supervisor.status === 'DONE') return void (await leave(session, completed(finalText(session))))
      // Without a question since the last answer, that answer is journalled and the graph did not start again yet.
      if (isAsked(session) && !(await takeAnswer(session, supervisor))) return waitForPerson(session)
      const { active_agent: _, ...rest } = supervisor
      input = { supervisor: { ...rest, status: 'RUNNING' }, agent }
    }
    const rounds = settings.supervisor_max_rounds
    const { isWaiting, ...state } = await graph.run(
      { threadId: run.id, execution: executionOf(session) },
      input,
      rounds,
    )
    if (isWaiting) {
      await park(session, { children: true, human: false })
      session.deps.onReady()
      return
    }
    read = { state, isOver: true }
  }
}

const firstState = (session: Session): GraphState => ({
  supervisor: newSupervisorState(session.run.id, partOf(session).context.context_id),
  agent: newAgentState(),
})

const escalationId = ({ run, state }: Session): string => idFrom(`${run.id} escalation ${state.personAnswers.length}`)

/** Takes the answer to the escalation, if there is one. */
async function takeAnswer(session: Session, { history }: SupervisorState): Promise<boolean> {
  const taskId = escalationId(session)
  const given = (await session.deps.askHuman.answers([taskId])).get(taskId)
  if (!given) return false
  const answer = wordsOf(given)
  await append(session, [{ kind: 'supervisor.answered', data: { task_id: taskId, answer, summaries: history.length } }])
  return true
}

function wordsOf({ answer, isRefused }: { answer: unknown; isRefused: boolean }): string {
  if (isRefused) return 'The people in charge declined to answer.'
  const words = typeof answer === 'string' ? answer : JSON.stringify(answer)
  return words.trim() === '' ? 'The question was marked as done, without words.' : words
}

/** People are asked once. An eval asks nobody, and its run ends here. */
async function waitForPerson(session: Session): Promise<void> {
  const { deps, run, agent } = session
  const question = questionText(session)
  if (run.trigger.eval_id !== undefined) return void (await leave(session, stopped('human', question)))
  const taskId = escalationId(session)
  await deps.askHuman.ask({ taskId, projectId: run.project_id, runId: run.id, agentId: agent.id, question })
  const end = waiting('human', [], run.signals)
  await append(session, [end.event], { set: { ...end.set, summary: question } })
}
