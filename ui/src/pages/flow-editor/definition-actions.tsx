// The actions of a flow: start, save, duplicate, export, delete.
import { Button, Group, Switch } from '@mantine/core'
import { useQueryClient } from '@tanstack/react-query'
import { Link, useNavigate } from '@tanstack/react-router'
import { Copy, Download, Play, Save, Trash2 } from 'lucide-react'
import { changeDefinition, definitionQuery, deleteDefinition, type FlowDefinition } from '../../api/flow-definitions.ts'
import { useRole } from '../../app/role.ts'
import { ConfirmButton } from '../../parts/confirm.tsx'
import { tell, useWrite } from '../../parts/use-write.ts'
import type { Flowing } from './editing.ts'

interface Props {
  projectId: string
  base: FlowDefinition | null
  flow: Flowing
  isDirty: boolean
  isBusy: boolean
  mayEdit: boolean
  /** A tree with problems cannot be saved or started. */
  isWrong: boolean
  onSave: () => void
  onStart: () => void
  onDeleted: () => void
}

export function DefinitionActions(props: Props) {
  const { projectId, base, flow, isDirty, isBusy, mayEdit, isWrong, onSave, onStart } = props
  const role = useRole(projectId)
  const isAdmin = role === 'admin'
  return (
    <Group gap="xs">
      <Button
        size="xs"
        variant="default"
        leftSection={<Download size={13} aria-hidden />}
        onClick={() => download(flow)}
      >
        Export
      </Button>
      {base && role !== 'viewer' && (
        <Button
          size="xs"
          variant="default"
          leftSection={<Copy size={13} aria-hidden />}
          renderRoot={(root) => (
            <Link to="/projects/$projectId/flows/new" params={{ projectId }} search={{ from: base.id }} {...root} />
          )}
        >
          Duplicate
        </Button>
      )}
      {base && isAdmin && <Delete flow={base} onDeleted={props.onDeleted} />}
      {role !== 'viewer' && (
        <Button
          size="xs"
          variant={mayEdit && isAdmin ? 'default' : 'filled'}
          leftSection={<Play size={13} aria-hidden />}
          disabled={isWrong}
          onClick={onStart}
        >
          Start flow
        </Button>
      )}
      {mayEdit && isAdmin && (
        <Button
          size="xs"
          leftSection={<Save size={13} aria-hidden />}
          loading={isBusy}
          disabled={base !== null && !isDirty}
          onClick={onSave}
        >
          Save
        </Button>
      )}
    </Group>
  )
}

/** The definition as a file, in the shape that POST /flows takes. */
function download({ name, root }: Flowing): void {
  const url = URL.createObjectURL(
    new Blob([`${JSON.stringify({ name, root }, null, 2)}\n`], { type: 'application/json' }),
  )
  const link = document.createElement('a')
  link.href = url
  link.download = `${name.trim().replaceAll(/[^\p{L}\p{N}_-]+/gu, '-') || 'flow'}.flow.json`
  link.click()
  setTimeout(() => URL.revokeObjectURL(url), 10_000)
}

function Delete({ flow, onDeleted }: { flow: FlowDefinition; onDeleted: () => void }) {
  const client = useQueryClient()
  const navigate = useNavigate()
  const run = async (): Promise<void> => {
    await deleteDefinition(flow)
    onDeleted()
    tell(`${flow.name} is deleted. Its runs stay.`)
    void client.invalidateQueries({ queryKey: ['flow', flow.project_id, 'list'] })
    await navigate({ to: '/projects/$projectId/flows', params: { projectId: flow.project_id }, ignoreBlocker: true })
  }
  return (
    <ConfirmButton
      name="Delete"
      title="Delete this flow?"
      text={`${flow.name} cannot be started any more. Its runs stay.`}
      icon={<Trash2 size={13} aria-hidden />}
      onSure={run}
    />
  )
}

/** Saved at once, also for a flow that follows the code. */
export function Enabled({ flow, onSaved }: { flow: FlowDefinition; onSaved: (flow: FlowDefinition) => void }) {
  const client = useQueryClient()
  const isAdmin = useRole(flow.project_id) === 'admin'
  const { write, isBusy } = useWrite({ reads: [['flow', flow.project_id, 'list']], isToldAside: true })
  const change = (enabled: boolean): void =>
    void write(
      async () => {
        const saved = await changeDefinition(flow, { enabled })
        client.setQueryData(definitionQuery(flow.project_id, flow.id).queryKey, saved)
        onSaved(saved)
      },
      enabled ? 'The flow can be started.' : 'The flow cannot be started any more.',
    )
  return (
    <Switch
      label="Enabled"
      checked={flow.enabled}
      disabled={!isAdmin || isBusy}
      onChange={(event) => change(event.currentTarget.checked)}
    />
  )
}
