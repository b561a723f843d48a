import { Button, Group, Progress, Table, Text, Title } from '@mantine/core'
import { useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { getRouteApi, Link } from '@tanstack/react-router'
import { Plus } from 'lucide-react'
import { useState } from 'react'
import type { ListedEval } from '../../../../src/kernel/eval.ts'
import { evalQuery, evalsQuery } from '../../api/evals.ts'
import { useRole } from '../../app/role.ts'
import { More } from '../../parts/more.tsx'
import { PageHead } from '../../parts/page-head.tsx'
import { Empty, Failure, Loading, Stale } from '../../parts/states.tsx'
import { Status } from '../../parts/status.tsx'
import { Elapsed, When } from '../../parts/when.tsx'
import { WideTable } from '../../parts/wide-table.tsx'
import { CancelEval } from './cancel-eval.tsx'
import { NewEval } from './new-eval.tsx'
import { percent } from './verdict.ts'

const route = getRouteApi('/projects/$projectId/evals')

/** The results of this many small evals are read for the list: the list itself has none. */
const MOST_READ = 10
const SMALL = 100

export function EvalsPage() {
  const { projectId } = route.useParams()
  const mayRun = useRole(projectId) !== 'viewer'
  const [isNew, setIsNew] = useState(false)
  return (
    <>
      <PageHead name="Evals" title={<Title order={1}>Evals</Title>}>
        {mayRun && <NewButton onClick={() => setIsNew(true)} />}
      </PageHead>
      {mayRun ? (
        <EvalList projectId={projectId} onNew={() => setIsNew(true)} />
      ) : (
        <Empty>Evals start runs, so members of the project see them. An admin can make you a member.</Empty>
      )}
      {isNew && <NewEval projectId={projectId} onClose={() => setIsNew(false)} />}
    </>
  )
}

function NewButton({ onClick }: { onClick: () => void }) {
  return (
    <Button size="xs" leftSection={<Plus size={13} aria-hidden />} onClick={onClick}>
      New eval
    </Button>
  )
}

function EvalList({ projectId, onNew }: { projectId: string; onNew: () => void }) {
  const list = useInfiniteQuery(evalsQuery(projectId))
  const evals = list.data?.pages.flatMap(({ items }) => items) ?? []
  const retry = (): void => void list.refetch()
  if (list.isPending) return <Loading lines={8} />
  if (!list.data) return <Failure what="The evals could not be read." error={list.error} onRetry={retry} />
  if (evals.length === 0) {
    return (
      <Empty action={<NewButton onClick={onNew} />}>
        An eval runs the same cases on several variants of the supervisor system, and says which of them does better.
      </Empty>
    )
  }
  return (
    <>
      {list.isError && <Stale onRetry={retry} />}
      <EvalTable evals={evals} projectId={projectId} />
      <More list={list} />
    </>
  )
}

function EvalTable({ evals, projectId }: { evals: readonly ListedEval[]; projectId: string }) {
  return (
    <WideTable name="Table of evals" minWidth={760}>
      <Table.Thead>
        <Table.Tr>
          {['Status', 'Name', 'Progress', 'Result', 'Took', 'Started', 'Actions'].map((name) => (
            <Table.Th key={name} className="dim" fw={500}>
              {name === 'Actions' ? <span className="visually-hidden">{name}</span> : name}
            </Table.Th>
          ))}
        </Table.Tr>
      </Table.Thead>
      <Table.Tbody>
        {evals.map((one, place) => (
          <Row key={one.id} one={one} projectId={projectId} isRead={place < MOST_READ} />
        ))}
      </Table.Tbody>
    </WideTable>
  )
}

function Row({ one, projectId, isRead }: { one: ListedEval; projectId: string; isRead: boolean }) {
  const { done, total } = one.progress
  const isRunning = one.status === 'running'
  return (
    <Table.Tr>
      <Table.Td>
        <Status of={one.status} {...(one.error_message !== null && { title: one.error_message })} />
      </Table.Td>
      <Table.Td maw={320} className="cut">
        <Link to="/projects/$projectId/evals/$evalId" params={{ projectId, evalId: one.id }}>
          {one.name}
        </Link>
      </Table.Td>
      <Table.Td>
        <Group gap="xs" wrap="nowrap">
          <span className="number">
            {done} of {total}
          </span>
          {isRunning && (
            <Progress
              w={80}
              size="sm"
              value={total === 0 ? 0 : (100 * done) / total}
              aria-label={`Progress of ${one.name}`}
            />
          )}
        </Group>
      </Table.Td>
      <Table.Td className="number">
        {isRead && !isRunning && total <= SMALL ? (
          <Result one={one} projectId={projectId} />
        ) : (
          <Text size="sm" className="dim">
            {one.compared.join(', ')}
          </Text>
        )}
      </Table.Td>
      <Table.Td>
        <Elapsed from={one.created_at} ms={tookOf(one)} />
      </Table.Td>
      <Table.Td className="dim">
        <When at={one.created_at} />
      </Table.Td>
      <Table.Td>{isRunning && <CancelEval one={one} isSmall />}</Table.Td>
    </Table.Tr>
  )
}

const tookOf = ({ created_at, completed_at }: ListedEval): number | null =>
  completed_at === null ? null : Date.parse(completed_at) - Date.parse(created_at)

/** An ended eval never changes. */
function Result({ one, projectId }: { one: ListedEval; projectId: string }) {
  const read = useQuery({ ...evalQuery(projectId, one.id), staleTime: Number.POSITIVE_INFINITY })
  return one.compared.map((name) => `${name} ${percent(read.data?.variants[name]?.pass_rate ?? null)}`).join(' · ')
}
