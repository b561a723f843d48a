// The name of a flow run, how it stands, and what can be done with it.
import { Badge, Button, Group, Menu, Title } from '@mantine/core'
import { Link } from '@tanstack/react-router'
import { Ban, Clock, Download, Plus, Shuffle } from 'lucide-react'
import type { FlowRun } from '../../../../src/kernel/flow-run.ts'
import { flowRunPath, isChangeable, patternName } from '../../api/flows.ts'
import { useRole } from '../../app/role.ts'
import { PageHead } from '../../parts/page-head.tsx'
import { Status } from '../../parts/status.tsx'
import type { FlowDialogType } from './flow-dialogs.tsx'
import classes from './flow-page.module.css'
import { RunAgain } from './run-again.tsx'

const FORMATS = { json: 'JSON', chrome: 'Chrome trace', otlp: 'OTLP', csv: 'CSV' } as const

interface Props {
  projectId: string
  run: FlowRun
  name: string
  /** The status as people are told it: halted while the project is. */
  status: string
  isHalted: boolean
  isLive: boolean
  isAdaptive: boolean
  onDialog: (type: FlowDialogType) => void
}

export function FlowHead({ projectId, run, name, status, isHalted, isLive, isAdaptive, onDialog }: Props) {
  const mayWrite = useRole(projectId) !== 'viewer'
  const mayChange = mayWrite && isChangeable(run)
  const isUnderWay = run.completed_at === null
  return (
    <PageHead
      name={`${name} · Flow`}
      title={
        <div style={{ minWidth: 0 }}>
          <Link to="/projects/$projectId/flows" params={{ projectId }} className="dim">
            Flows
          </Link>
          <Group gap="sm">
            <Title order={1}>{name}</Title>
            <Badge variant="default" tt="none" fw={500} title="Pattern">
              {patternName(run.pattern)}
            </Badge>
            <Status of={status} />
            {isUnderWay && !isHalted && (
              <span className={classes.live} data-live={isLive}>
                {isLive ? 'Live' : 'Reconnecting'}
              </span>
            )}
          </Group>
        </div>
      }
    >
      <Group gap="xs">
        <Menu position="bottom-end">
          <Menu.Target>
            <Button size="xs" variant="default" leftSection={<Download size={13} aria-hidden />}>
              Export
            </Button>
          </Menu.Target>
          <Menu.Dropdown>
            {Object.entries(FORMATS).map(([format, words]) => (
              <Menu.Item
                key={format}
                component="a"
                href={flowRunPath(projectId, run.id, `/trace?format=${format}`)}
                download={`flow-${run.id}.${format === 'csv' ? 'csv' : `${format}.json`}`}
              >
                {words}
              </Menu.Item>
            ))}
          </Menu.Dropdown>
        </Menu>
        {mayWrite && !isUnderWay && <RunAgain projectId={projectId} runId={run.id} />}
        {mayChange && (
          <>
            <Act name="Add workers" icon={<Plus size={13} aria-hidden />} onClick={() => onDialog('workers')} />
            {isAdaptive && (
              <Act
                name="Switch topology"
                icon={<Shuffle size={13} aria-hidden />}
                onClick={() => onDialog('topology')}
              />
            )}
            <Act name="Timeout" icon={<Clock size={13} aria-hidden />} onClick={() => onDialog('timeout')} />
            <Button
              size="xs"
              variant="light"
              color="red"
              leftSection={<Ban size={13} aria-hidden />}
              onClick={() => onDialog('cancel')}
            >
              Cancel
            </Button>
          </>
        )}
      </Group>
    </PageHead>
  )
}

function Act({ name, icon, onClick }: { name: string; icon: React.ReactNode; onClick: () => void }) {
  return (
    <Button size="xs" variant="default" leftSection={icon} onClick={onClick}>
      {name}
    </Button>
  )
}
