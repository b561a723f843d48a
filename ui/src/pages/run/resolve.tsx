// The action that resolves a run's stop, beside the sentence that gives the reason.

import { Button, Group, NumberInput, Text, Textarea } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import type { Run } from '../../../../src/kernel/run.ts'
import type { StopAction } from '../../../../src/kernel/why-stopped.ts'
import { questionQuery } from '../../api/chats.ts'
import { patch, post } from '../../api/client.ts'
import { inboxKindOf } from '../../api/inbox.ts'
import { effectsQuery, projectPath, runQuery } from '../../api/queries.ts'
import { useRole } from '../../app/role.ts'
import { oneLine } from '../../parts/figures.ts'
import { Problem } from '../../parts/problem.tsx'
import { showMarks } from '../../parts/property-diff.ts'
import { TryNow } from '../../parts/try-now.tsx'
import { typedNumber } from '../../parts/typed-number.ts'
import { useWrite } from '../../parts/use-write.ts'
import { When } from '../../parts/when.tsx'
import { ApprovalLinks } from './approval-links.tsx'
import { FlowResume, ResumeActions, TaskResume } from './resume-actions.tsx'
import type { Dialog } from './run-dialogs.tsx'

interface Props {
  run: Run
  action: StopAction | null
  onDialog: (dialog: Dialog) => void
}

export function Resolve({ run, action, onDialog }: Props) {
  const role = useRole(run.project_id)
  if (action === 'open_continuation') return <Continuation run={run} />
  if (action === 'resume_flow') return <FlowResume run={run} />
  if (role === 'viewer') return null
  switch (action) {
    case 'resume':
      return <ResumeActions run={run} onDialog={onDialog} />
    case 'resume_task':
      return <TaskResume run={run} />
    case 'answer':
      return <Answer run={run} />
    case 'approve':
      return <ApprovalLinks run={run} />
    case 'try_now':
      return <TryNow run={run} />
    case 'decide_outcome':
      return <Outcome run={run} />
    case 'top_up':
      return (
        <>
          {role === 'admin' && run.agent_id !== null && <TopUp run={run} agentId={run.agent_id} />}
          {/* The run of a task continues by itself. */}
          {run.completed_at !== null && run.trigger.type !== 'task' && <ResumeActions run={run} onDialog={onDialog} />}
        </>
      )
    case 'unhalt':
      return role === 'admin' ? <Unhalt run={run} /> : null
    case 'start_agent':
    case null:
      return null
  }
}

function Continuation({ run }: { run: Run }) {
  if (run.resumed_as === null) return null
  const params = { projectId: run.project_id, runId: run.resumed_as }
  return (
    <Link to="/projects/$projectId/runs/$runId" params={params}>
      Open the run that continues it
    </Link>
  )
}

function useAct(run: Run) {
  const { project_id: projectId, id } = run
  const { write, isBusy, problem } = useWrite({
    reads: [runQuery(projectId, id).queryKey, questionQuery(projectId, id).queryKey],
  })
  const shown = problem !== null && (
    <div style={{ flexBasis: '100%' }}>
      <Problem text={problem} />
    </div>
  )
  return { act: (work: () => Promise<unknown>) => void write(work), isBusy, problem: shown }
}

function Answer({ run }: { run: Run }) {
  const [text, setText] = useState('')
  const { act, isBusy, problem } = useAct(run)
  const question = useQuery(questionQuery(run.project_id, run.id))
  if (!question.data) return question.isPending ? null : <Text className="dim">The question is not open any more.</Text>
  const { id, title, description } = question.data
  if (inboxKindOf(question.data) === 'anew') {
    return (
      <>
        <Text style={{ flexBasis: '100%' }}>{showMarks(title)}</Text>
        <Link to="/projects/$projectId/inbox" params={{ projectId: run.project_id }} search={{ item: id }}>
          Review its calls and decide
        </Link>
      </>
    )
  }
  return (
    <div style={{ flexBasis: '100%' }}>
      <Textarea
        label={description ?? title}
        autosize
        minRows={2}
        value={text}
        onChange={(event) => setText(event.currentTarget.value)}
      />
      {problem}
      <Group mt="xs">
        <Button
          size="xs"
          loading={isBusy}
          disabled={text.trim() === ''}
          onClick={() =>
            act(() => patch(projectPath(run.project_id, `/tasks/${id}`), { status: 'completed', result: text }))
          }
        >
          Answer
        </Button>
      </Group>
    </div>
  )
}

const MAX_LINE = 500

/** If several calls are undecided, they are shown one after the other. */
function Outcome({ run }: { run: Run }) {
  const { act, isBusy, problem } = useAct(run)
  const question = useQuery(questionQuery(run.project_id, run.id))
  const callId = question.data?.metadata.call_id
  const { data: effects } = useQuery(effectsQuery(run.project_id, run.id))
  const call = effects?.items.find(({ outcome, call_id: id }) => outcome === 'unknown' && id === callId)
  const say = (outcome: 'done' | 'not_done') =>
    act(() =>
      post(
        projectPath(run.project_id, `/runs/${run.id}/resume`),
        { outcome, ...(typeof callId === 'string' ? { call_id: callId } : {}) },
        { headers: { prefer: 'respond-async' } },
      ),
    )
  return (
    <Group gap="xs">
      {problem}
      {question.data && (
        <Text size="sm" style={{ flexBasis: '100%' }}>
          {question.data.title}
        </Text>
      )}
      {call && (
        <Text size="sm" style={{ flexBasis: '100%', overflowWrap: 'anywhere' }}>
          <code className="mono">{showMarks(oneLine(call.args, MAX_LINE))}</code>{' '}
          <span className="dim">
            <When at={call.at} />, idempotency key <span className="mono">{call.key}</span>
          </span>
        </Text>
      )}
      <Button size="xs" variant="default" loading={isBusy} onClick={() => say('done')}>
        It was done
      </Button>
      <Button size="xs" variant="default" loading={isBusy} onClick={() => say('not_done')}>
        It was not done
      </Button>
    </Group>
  )
}

const MORE_TOKENS = 10_000

function TopUp({ run, agentId }: { run: Run; agentId: string }) {
  const [add, setAdd] = useState<number | string>(MORE_TOKENS)
  const { act, isBusy, problem } = useAct(run)
  return (
    <Group gap="xs">
      {problem}
      <NumberInput aria-label="Tokens" size="xs" w={110} min={1} step={1_000} value={add} onChange={setAdd} />
      <Button
        size="xs"
        loading={isBusy}
        onClick={() =>
          act(() => post(projectPath(run.project_id, `/agents/${agentId}/budget`), { add: typedNumber(add) }))
        }
      >
        Top up
      </Button>
    </Group>
  )
}

function Unhalt({ run }: { run: Run }) {
  const { act, isBusy, problem } = useAct(run)
  return (
    <Group gap="xs">
      {problem}
      <Button size="xs" loading={isBusy} onClick={() => act(() => post(projectPath(run.project_id, '/unhalt')))}>
        Unhalt project
      </Button>
    </Group>
  )
}
