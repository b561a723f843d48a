// An eval: what it says in one sentence, the variants compared, and every case, those that changed first.
import { Group, Progress, Title } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { getRouteApi, Link } from '@tanstack/react-router'
import type { Eval } from '../../../../src/kernel/eval.ts'
import { ApiError } from '../../api/client.ts'
import { evalQuery } from '../../api/evals.ts'
import { useRole } from '../../app/role.ts'
import { Unknown } from '../../app/unknown.tsx'
import { lazily } from '../../parts/lazily.tsx'
import { PageHead } from '../../parts/page-head.tsx'
import { Panel } from '../../parts/panel.tsx'
import { Empty, Failure, Loading, Stale } from '../../parts/states.tsx'
import { Status } from '../../parts/status.tsx'
import { CancelEval } from './cancel-eval.tsx'
import { Cases } from './cases.tsx'
import { Comparison } from './comparison.tsx'
import classes from './evals.module.css'
import { verdictOf } from './verdict.ts'

const EvalCharts = lazily(() => import('./eval-charts.tsx').then((module) => module.EvalCharts))

const route = getRouteApi('/projects/$projectId/evals/$evalId')

export function EvalPage() {
  const { projectId, evalId } = route.useParams()
  const mayRead = useRole(projectId) !== 'viewer'
  const read = useQuery({ ...evalQuery(projectId, evalId), enabled: mayRead })
  const retry = (): void => void read.refetch()
  if (!mayRead) {
    return (
      <>
        <PageHead name="Eval" title={<Title order={1}>Eval</Title>} />
        <Empty>Evals start runs, so members of the project see them. An admin can make you a member.</Empty>
      </>
    )
  }
  if (read.isPending) return <Loading lines={10} />
  if (read.error instanceof ApiError && read.error.status === 404) return <Unknown />
  if (!read.data) return <Failure what="The eval could not be read." error={read.error} onRetry={retry} />
  return (
    <>
      {read.isError && <Stale onRetry={retry} />}
      <Head one={read.data} />
      <div className={classes.body}>
        <Comparison one={read.data} />
        {hasFigures(read.data) && (
          <Panel name="The charts">
            <EvalCharts one={read.data} />
          </Panel>
        )}
        <Cases key={evalId} one={read.data} />
      </div>
    </>
  )
}

const hasFigures = ({ variants }: Eval): boolean => Object.values(variants).some(({ pass_rate }) => pass_rate !== null)

function Head({ one }: { one: Eval }) {
  const { done, total } = one.progress
  const verdict = verdictOf(one)
  const isRunning = one.status === 'running'
  return (
    <>
      <PageHead
        name={`${one.name} · Eval`}
        title={
          <div>
            <Link to="/projects/$projectId/evals" params={{ projectId: one.project_id }} className="dim">
              Evals
            </Link>
            <Group gap="sm">
              <Title order={1}>{one.name}</Title>
              <Status of={one.status} />
            </Group>
          </div>
        }
      >
        {isRunning && <CancelEval one={one} />}
      </PageHead>
      <div className={classes.verdict} style={{ '--tone': `var(--${verdict.tone})` } as React.CSSProperties}>
        <p role="status">{verdict.text}</p>
        {isRunning && (
          <Progress mt="xs" size="sm" value={total === 0 ? 0 : (100 * done) / total} aria-label="Progress" />
        )}
      </div>
    </>
  )
}
