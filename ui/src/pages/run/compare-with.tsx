// Picks the run to compare with: the run it came from, runs that came from it, then recent runs of the same agent.
import { Button, Modal, Table } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { GitCompareArrows } from 'lucide-react'
import { useState } from 'react'
import type { Run } from '../../../../src/kernel/run.ts'
import { newestRunsQuery, runQuery } from '../../api/queries.ts'
import { oneLine } from '../../parts/figures.ts'
import { Empty, Failure, Loading } from '../../parts/states.tsx'
import { Status } from '../../parts/status.tsx'
import { When } from '../../parts/when.tsx'
import { partnersOf } from './partners.ts'

export function CompareWith({ run }: { run: Run }) {
  const [isOpen, setIsOpen] = useState(false)
  return (
    <>
      <Button
        size="xs"
        variant="default"
        leftSection={<GitCompareArrows size={13} aria-hidden />}
        onClick={() => setIsOpen(true)}
      >
        Compare
      </Button>
      {isOpen && (
        <Modal
          opened
          size="lg"
          onClose={() => setIsOpen(false)}
          title="Compare with"
          closeButtonProps={{ 'aria-label': 'Close' }}
        >
          <Partners run={run} />
        </Modal>
      )}
    </>
  )
}

function Partners({ run }: { run: Run }) {
  const originId = run.forked_from ?? run.resumed_from
  const recent = useQuery(newestRunsQuery(run.project_id, { agent_id: run.agent_id ?? undefined }))
  const origin = useQuery({ ...runQuery(run.project_id, originId ?? run.id), enabled: originId !== null })
  if (recent.isPending) return <Loading />
  if (!recent.data)
    return <Failure what="The runs could not be read." error={recent.error} onRetry={() => void recent.refetch()} />
  const partners = partnersOf(run, originId === null ? null : (origin.data ?? null), recent.data.items)
  if (partners.length === 0) return <Empty>There is no other run of this agent yet. Trigger it once more.</Empty>
  return (
    <Table.ScrollContainer minWidth={420} scrollAreaProps={{ tabIndex: 0 }}>
      <Table verticalSpacing={5} highlightOnHover aria-label="Runs to compare with">
        <Table.Tbody>
          {partners.map(({ run: other, relation }) => (
            <Table.Tr key={other.id}>
              <Table.Td>
                <Status of={other.status} />
              </Table.Td>
              <Table.Td maw={280} className="cut">
                <Link
                  to="/projects/$projectId/runs/$runId/compare/$otherId"
                  params={{ projectId: run.project_id, runId: other.id, otherId: run.id }}
                >
                  {relation ?? (oneLine(other.input ?? '', 80) || 'A run without input')}
                </Link>
              </Table.Td>
              <Table.Td className="dim">
                <When at={other.created_at} />
              </Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </Table.ScrollContainer>
  )
}
