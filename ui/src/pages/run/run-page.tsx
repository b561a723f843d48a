// The page on which people understand a run: why it stands where it does, what it said and did, and what to do now.
import { Button, Group, Title } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { getRouteApi, Link } from '@tanstack/react-router'
import { Ban, Play } from 'lucide-react'
import { useState } from 'react'
import type { Agent } from '../../../../src/kernel/agent.ts'
import type { Run } from '../../../../src/kernel/run.ts'
import { useAgentName } from '../../api/agent-names.ts'
import { ApiError, post } from '../../api/client.ts'
import { awaitedCallsQuery } from '../../api/inbox.ts'
import { agentQuery, projectPath } from '../../api/queries.ts'
import { useRole } from '../../app/role.ts'
import { Unknown } from '../../app/unknown.tsx'
import { NextTry } from '../../parts/next-try.tsx'
import { PageHead } from '../../parts/page-head.tsx'
import { showMarks } from '../../parts/property-diff.ts'
import { Continued } from '../../parts/run-cells.tsx'
import { RunStatus } from '../../parts/run-status.tsx'
import { Failure, Loading, Stale } from '../../parts/states.tsx'
import { useWrite } from '../../parts/use-write.ts'
import { CompareWith } from './compare-with.tsx'
import type { FailedTry } from './live-text.ts'
import { Resolve } from './resolve.tsx'
import { RunAside } from './run-aside.tsx'
import { type Dialog, RunDialog } from './run-dialogs.tsx'
import classes from './run-page.module.css'
import { Transcript } from './transcript.tsx'
import { useLiveRun } from './use-live-run.ts'
import { verdictOf } from './verdict.ts'

const route = getRouteApi('/projects/$projectId/runs/$runId')

export function RunPage() {
  const { projectId, runId } = route.useParams()
  return <RunOf key={runId} projectId={projectId} runId={runId} />
}

function RunOf({ projectId, runId }: { projectId: string; runId: string }) {
  const { run, steps, waits, live, failedTry, isLive } = useLiveRun(projectId, runId)
  if (run.isPending) return <Loading lines={10} />
  if (run.error instanceof ApiError && run.error.status === 404) return <Unknown />
  if (!run.data)
    return <Failure what="The run could not be read." error={run.error} onRetry={() => void run.refetch()} />
  return (
    <>
      {(run.isError || !isLive) && <Stale onRetry={() => void run.refetch()} />}
      <Head run={run.data} failedTry={failedTry} />
      <div className={classes.columns}>
        <Body run={run.data} steps={steps.data ?? []} live={live} />
        <aside className={classes.aside} aria-label="Figures">
          <RunAside run={run.data} steps={steps.data ?? []} waits={waits.data ?? []} />
        </aside>
      </div>
    </>
  )
}

function useNameOf({ project_id, agent_id }: Run): string {
  const name = useAgentName(project_id, agent_id)
  if (agent_id === null) return 'The supervisor system'
  return name ?? (name === null ? 'A deleted agent' : 'The agent')
}

/** The agent of a run that has no tokens; undefined for any other run, and until the agent is read. */
function useAgentWithoutTokens(run: Run): Agent | undefined {
  const isShort = run.pause_reason === 'budget' || run.error_code === 'BUDGET_EXHAUSTED'
  return useQuery({ ...agentQuery(run.project_id, run.agent_id ?? ''), enabled: isShort && run.agent_id !== null }).data
}

function Head({ run, failedTry }: { run: Run; failedTry: FailedTry | null }) {
  const name = useNameOf(run)
  const mayWrite = useRole(run.project_id) !== 'viewer'
  const [dialog, setDialog] = useState<Dialog | null>(null)
  const verdict = verdictOf(run, name, useAgentWithoutTokens(run))
  const isHeld = verdict.action === 'approve'
  const { data: awaited = [] } = useQuery({ ...awaitedCallsQuery(run.project_id, run.id), enabled: isHeld })
  return (
    <>
      <PageHead
        name={`${name} · Run`}
        title={
          <div>
            <Link to="/projects/$projectId/runs" params={{ projectId: run.project_id }} className="dim">
              Runs
            </Link>
            <Group gap="sm">
              <Title order={1}>{name}</Title>
              <RunStatus run={run} />
              <Continued run={run} />
            </Group>
          </div>
        }
      >
        <Group gap="xs">
          <CompareWith key={run.id} run={run} />
          {mayWrite && run.agent_id !== null && (
            <Button
              size="xs"
              variant="default"
              leftSection={<Play size={13} aria-hidden />}
              onClick={() => setDialog({ type: 'trigger' })}
            >
              Trigger
            </Button>
          )}
          {mayWrite && run.completed_at === null && <Cancel run={run} />}
        </Group>
      </PageHead>
      <div
        className={classes.verdict}
        style={{ '--tone': `var(--${verdict.tone})` } as React.CSSProperties}
        role="status"
        data-tour="verdict"
      >
        <p>
          {approvalText(name, awaited) ?? verdict.text}
          {run.status === 'running' && failedTry && <LastTry of={failedTry} />}
          {run.next_try_at !== null && (
            <>
              {' '}
              <NextTry at={run.next_try_at} />
            </>
          )}
        </p>
        <Resolve run={run} action={verdict.action} onDialog={setDialog} />
      </div>
      {dialog && <RunDialog key={run.id} run={run} steps={[]} dialog={dialog} onClose={() => setDialog(null)} />}
    </>
  )
}

function LastTry({ of: { message, nextAt } }: { of: FailedTry }) {
  return (
    <>
      {' '}
      The last try failed: {showMarks(message.replace(/[.\s]+$/, ''))}. {nextAt !== null && <NextTry at={nextAt} />}
    </>
  )
}

/** "Writer waits for your approval of refund." Null while the calls are not known. */
function approvalText(name: string, awaited: readonly { tool: string }[]): string | null {
  const tools = [...new Set(awaited.map(({ tool }) => tool))]
  return tools.length === 0 ? null : `${name} waits for your approval of ${tools.join(' and ')}.`
}

function Cancel({ run }: { run: Run }) {
  const { write, isBusy } = useWrite({ isToldAside: true })
  const path = projectPath(run.project_id, `/runs/${run.id}/cancel`)
  return (
    <Button
      size="xs"
      variant="light"
      color="red"
      loading={isBusy}
      leftSection={<Ban size={13} aria-hidden />}
      onClick={() => void write(() => post(path, {}, { patienceMs: 60_000 }))}
    >
      Cancel
    </Button>
  )
}

function Body(props: Omit<Parameters<typeof Transcript>[0], 'onFork'>) {
  // Runs of a supervisor system have no agent, and cannot be forked.
  const mayFork = useRole(props.run.project_id) !== 'viewer' && props.run.agent_id !== null
  const [step, setStep] = useState<number | null>(null)
  return (
    <div>
      <Transcript {...props} onFork={mayFork ? setStep : null} />
      {step !== null && (
        <RunDialog run={props.run} steps={props.steps} dialog={{ type: 'fork', step }} onClose={() => setStep(null)} />
      )}
    </div>
  )
}
