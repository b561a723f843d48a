// The actions on an agent: trigger it, edit it, switch it off and on, copy it, delete it.
import { ActionIcon, Button, Group, Menu } from '@mantine/core'
import { useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { Copy, Ellipsis, Pencil, Play, Power, Trash2 } from 'lucide-react'
import { useState } from 'react'
import type { Agent } from '../../../../src/kernel/agent.ts'
import { agentPath } from '../../api/agents.ts'
import { patch, remove } from '../../api/client.ts'
import { useRole } from '../../app/role.ts'
import { Confirm } from '../../parts/confirm.tsx'
import { tell, useWrite } from '../../parts/use-write.ts'
import { TriggerDialog } from './trigger-dialog.tsx'

export function AgentActions({ agent }: { agent: Agent }) {
  const role = useRole(agent.project_id)
  const navigate = useNavigate()
  const [dialog, setDialog] = useState<'trigger' | 'delete' | null>(null)
  const params = { projectId: agent.project_id, agentId: agent.id }
  if (role === 'viewer') return null
  return (
    <Group gap="xs">
      <Button
        size="xs"
        leftSection={<Play size={13} aria-hidden />}
        disabled={!agent.enabled}
        title={agent.enabled ? undefined : 'Enable the agent first.'}
        onClick={() => setDialog('trigger')}
      >
        Trigger
      </Button>
      {role === 'admin' && (
        <>
          <Button
            size="xs"
            variant="default"
            leftSection={<Pencil size={13} aria-hidden />}
            onClick={() => void navigate({ to: '/projects/$projectId/agents/$agentId/edit', params })}
          >
            Edit
          </Button>
          <MoreActions agent={agent} onDelete={() => setDialog('delete')} />
        </>
      )}
      {dialog === 'trigger' && <TriggerDialog agent={agent} onClose={() => setDialog(null)} />}
      {dialog === 'delete' && <DeleteDialog agent={agent} onClose={() => setDialog(null)} />}
    </Group>
  )
}

function MoreActions({ agent, onDelete }: { agent: Agent; onDelete: () => void }) {
  const { project_id: projectId, id, name, enabled } = agent
  const navigate = useNavigate()
  const { write, isBusy } = useWrite({ reads: [['agent', projectId]], isToldAside: true })
  const turn = (): void =>
    void write(
      () => patch(agentPath(projectId, id), { enabled: !enabled }),
      `${name} is ${enabled ? 'disabled' : 'enabled'}.`,
    )
  return (
    <Menu position="bottom-end">
      <Menu.Target>
        <ActionIcon variant="default" size={30} aria-label="More actions" loading={isBusy}>
          <Ellipsis size={15} aria-hidden />
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Item leftSection={<Power size={13} aria-hidden />} onClick={turn}>
          {enabled ? 'Disable' : 'Enable'}
        </Menu.Item>
        <Menu.Item
          leftSection={<Copy size={13} aria-hidden />}
          onClick={() =>
            void navigate({ to: '/projects/$projectId/agents/new', params: { projectId }, search: { from: id } })
          }
        >
          Duplicate
        </Menu.Item>
        <Menu.Item leftSection={<Trash2 size={13} aria-hidden />} c="var(--failed)" onClick={onDelete}>
          Delete
        </Menu.Item>
      </Menu.Dropdown>
    </Menu>
  )
}

function DeleteDialog({ agent, onClose }: { agent: Agent; onClose: () => void }) {
  const { project_id: projectId, id, name } = agent
  const client = useQueryClient()
  const navigate = useNavigate()
  const question = {
    title: `Delete ${name}?`,
    text: 'Nothing starts it any more, and its hooks close. Its open tasks and its subordinates go to its senior. Its runs stay. This cannot be undone.',
    action: 'Delete',
    refusal: 'Cancel',
    onYes: async () => {
      await remove(agentPath(projectId, id))
      tell(`${name} is deleted.`)
      await navigate({ to: '/projects/$projectId/agents', params: { projectId } })
      await client.invalidateQueries({ queryKey: ['agent', projectId] })
    },
  }
  return <Confirm question={question} onClose={onClose} />
}
