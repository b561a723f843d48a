// Start, Stop and Restart, of one agent or of all.
import { Button, Group } from '@mantine/core'
import { Play, RotateCw, Square } from 'lucide-react'
import type { OrgAgent } from '../../../../src/kernel/org.ts'
import { post } from '../../api/client.ts'
import { projectPath } from '../../api/queries.ts'
import { ConfirmButton } from '../../parts/confirm.tsx'
import { Problem } from '../../parts/problem.tsx'
import { showMarks } from '../../parts/property-diff.ts'
import { useAct } from './use-act.ts'

const PATIENCE_MS = 60_000

export function AgentControls({ projectId, agent }: { projectId: string; agent: OrgAgent }) {
  const { act, isBusy, problem } = useAct(projectId)
  const name = showMarks(agent.name)
  const send = (control: 'start' | 'stop' | 'restart', said: string): void => {
    const path = projectPath(projectId, `/agents/${agent.id}/${control}`)
    void act(() => post(path, {}, { patienceMs: PATIENCE_MS }), said)
  }
  const isStopped = agent.paused_for === 'stopped'
  const mayStart = agent.status === 'paused' || agent.status === 'stuck'
  return (
    <>
      <Group gap="xs">
        {mayStart && (
          <Button
            size="xs"
            loading={isBusy}
            leftSection={<Play size={13} aria-hidden />}
            onClick={() => send('start', `${name} is started.`)}
          >
            Start
          </Button>
        )}
        {!isStopped && (
          <Button
            size="xs"
            variant="default"
            loading={isBusy}
            leftSection={<Square size={13} aria-hidden />}
            onClick={() => send('stop', `${name} is stopped.`)}
          >
            Stop
          </Button>
        )}
        <Button
          size="xs"
          variant="default"
          loading={isBusy}
          leftSection={<RotateCw size={13} aria-hidden />}
          onClick={() => send('restart', `${name} is restarted.`)}
        >
          Restart
        </Button>
      </Group>
      <Problem text={problem} />
    </>
  )
}

export function WholeControls({ projectId, agents }: { projectId: string; agents: readonly OrgAgent[] }) {
  const { act, isBusy, problem } = useAct(projectId)
  const send = (control: 'start' | 'stop' | 'restart', said: string): Promise<boolean> =>
    act(() => post(projectPath(projectId, `/org/${control}`), {}, { patienceMs: PATIENCE_MS }), said)
  return (
    <>
      <Group gap="xs">
        {agents.some(({ status }) => status === 'paused') && (
          <Button
            size="xs"
            loading={isBusy}
            leftSection={<Play size={13} aria-hidden />}
            onClick={() => void send('start', 'All agents that have tokens are started.')}
          >
            Start
          </Button>
        )}
        {agents.some(({ paused_for }) => paused_for !== 'stopped') && (
          <ConfirmButton
            name="Stop"
            title="Stop the whole organisation?"
            text="All agents pause, and the tasks under way are handed back. Nothing is lost: Start lets them go on."
            icon={<Square size={13} aria-hidden />}
            isBusy={isBusy}
            onSure={() => send('stop', 'All agents are stopped.')}
          />
        )}
        <ConfirmButton
          name="Restart"
          title="Restart the whole organisation?"
          text="All agents that have tokens work again, also stopped and stuck ones. Tasks under way begin anew from their last state."
          icon={<RotateCw size={13} aria-hidden />}
          isBusy={isBusy}
          onSure={() => send('restart', 'All agents that have tokens are restarted.')}
        />
      </Group>
      <Problem text={problem} />
    </>
  )
}
