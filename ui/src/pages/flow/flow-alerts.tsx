// The alerts about a flow run that people have not seen yet, with the ways to act.
import { Button, Group } from '@mantine/core'
import { TriangleAlert } from 'lucide-react'
import type { FlowRun } from '../../../../src/kernel/flow-run.ts'
import { patch, post } from '../../api/client.ts'
import { type FlowAlert, flowRunPath, isChangeable } from '../../api/flows.ts'
import { projectPath } from '../../api/queries.ts'
import { useRole } from '../../app/role.ts'
import { duration } from '../../parts/figures.ts'
import { useWrite } from '../../parts/use-write.ts'
import { When } from '../../parts/when.tsx'
import { type FlowDialogType, readsOf } from './flow-dialogs.tsx'
import classes from './flow-page.module.css'

interface Props {
  projectId: string
  run: FlowRun
  onChoose: (taskId: string) => void
}

interface AlertProps extends Props {
  alerts: readonly FlowAlert[]
  bottleneck: string | undefined
  onDialog: (type: FlowDialogType) => void
}

export function FlowAlerts({ alerts, ...props }: AlertProps) {
  return alerts.map((alert) => <AlertNote key={alert.id} alert={alert} {...props} />)
}

function AlertNote(props: Omit<AlertProps, 'alerts'> & { alert: FlowAlert }) {
  const { projectId, run, alert, bottleneck, onChoose, onDialog } = props
  const mayWrite = useRole(projectId) !== 'viewer'
  const { write, isBusy } = useWrite({ reads: readsOf(projectId, run.id), isToldAside: true })
  const dialogs = { cancel: 'cancel', add_workers: 'workers', switch_topology: 'topology' } as const
  return (
    <section className={classes.note} data-tone="blocked" data-alert={alert.id} aria-label="Alert">
      <TriangleAlert size={15} aria-hidden />
      <p>
        <strong>{headOf(alert, run)}</strong> {alert.suspected_cause}{' '}
        <span className="dim">
          <When at={alert.created_at} />
        </span>
      </p>
      <Group gap="xs">
        {bottleneck !== undefined && <Small name="Show bottleneck" onClick={() => onChoose(bottleneck)} />}
        {mayWrite &&
          isChangeable(run) &&
          alert.actions.map((action) =>
            action === 'adjust' ? (
              alert.adjust && (
                <Small
                  key={action}
                  name={`Adjust to ${adjustText(alert.adjust)}`}
                  isBusy={isBusy}
                  onClick={() =>
                    void write(() => patch(flowRunPath(projectId, run.id), alert.adjust), 'The flow run is adjusted.')
                  }
                />
              )
            ) : (
              <Small key={action} name={NAMES[action]} onClick={() => onDialog(dialogs[action])} />
            ),
          )}
        {mayWrite && (
          <Small
            name="Acknowledge"
            isBusy={isBusy}
            onClick={() =>
              void write(() => post(projectPath(projectId, `/alerts/${alert.id}/ack`)), 'The alert is acknowledged.')
            }
          />
        )}
      </Group>
    </section>
  )
}

/** An alert keeps the words of its moment; after the end of the flow run they are about the past. */
function headOf({ kind }: FlowAlert, run: FlowRun): string {
  const word = kind === 'slow' ? 'Slower than expected' : kind
  return run.completed_at === null ? `${word}.` : `${word}, before it ended:`
}

/** Other words than those of the buttons on top, which do the same. */
const NAMES = { cancel: 'Stop it…', add_workers: 'More workers…', switch_topology: 'Other topology…' } as const

const adjustText = ({ timeout, workers }: { timeout?: number; workers?: number }): string =>
  [
    ...(timeout === undefined ? [] : [`a timeout of ${duration(timeout)}`]),
    ...(workers === undefined ? [] : [`${workers} workers`]),
  ].join(' and ')

function Small({ name, isBusy = false, onClick }: { name: string; isBusy?: boolean; onClick: () => void }) {
  return (
    <Button size="compact-sm" variant="default" disabled={isBusy} onClick={onClick}>
      {name}
    </Button>
  )
}
