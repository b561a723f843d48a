// The variants of the supervisor system, and the parts that each consists of.
import { Button, Group, Stack, Table, Text, Title } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { Copy, Pencil, TriangleAlert } from 'lucide-react'
import { useState } from 'react'
import type { ListedPrompt, ListedSystem } from '../../api/prompt-shapes.ts'
import { systemsQuery } from '../../api/prompts.ts'
import { useRole } from '../../app/role.ts'
import { Failure, Loading, Stale } from '../../parts/states.tsx'
import { When } from '../../parts/when.tsx'
import { WideTable } from '../../parts/wide-table.tsx'
import { type Part, partsOf } from './prompt-text.ts'
import classes from './prompts.module.css'
import { SystemDialog } from './system-dialog.tsx'

export function SystemsPanel({ projectId, prompts }: { projectId: string; prompts: readonly ListedPrompt[] }) {
  const systems = useQuery(systemsQuery(projectId))
  return (
    <Stack gap="md" component="section" aria-label="Systems">
      <div>
        <Title order={2}>Systems</Title>
        <Text size="sm" className="dim">
          A system is the team that answers a task: a planner, specialists, a finalizer, and an escalation that asks
          people. Each variant reads its prompts in the variant of the same name.
        </Text>
      </div>
      {systems.isPending && <Loading lines={8} />}
      {systems.isError && systems.data && <Stale onRetry={() => void systems.refetch()} />}
      {systems.isError && !systems.data && (
        <Failure what="The systems could not be read." error={systems.error} onRetry={() => void systems.refetch()} />
      )}
      {systems.data?.items.map((system) => (
        <SystemCard key={system.variant} system={system} projectId={projectId} prompts={prompts} />
      ))}
    </Stack>
  )
}

function SystemCard(props: { system: ListedSystem; projectId: string; prompts: readonly ListedPrompt[] }) {
  const { system, projectId, prompts } = props
  const isAdmin = useRole(projectId) === 'admin'
  const [dialog, setDialog] = useState<'edit' | 'copy' | null>(null)
  const parts = partsOf(system, prompts)
  const missing = parts.filter(({ isMissing }) => isMissing)
  return (
    <section className={classes.system} aria-label={`System ${system.variant}`}>
      <Group justify="space-between" gap="xs" mb="xs">
        <Group gap="sm">
          <Title order={3}>{system.variant}</Title>
          <Text size="sm" className="dim number">
            {Math.round(system.share * 100)} % of requests
          </Text>
          <Text size="sm" className="dim">
            {system.updated_at === null ? (
              'as it came with Muster'
            ) : (
              <>
                changed <When at={system.updated_at} />
              </>
            )}
          </Text>
        </Group>
        {isAdmin && (
          <Group gap="xs">
            <Button
              size="compact-sm"
              variant="default"
              leftSection={<Pencil size={12} aria-hidden />}
              aria-label={`Edit the system ${system.variant}`}
              onClick={() => setDialog('edit')}
            >
              Edit
            </Button>
            <Button
              size="compact-sm"
              variant="default"
              leftSection={<Copy size={12} aria-hidden />}
              aria-label={`Copy the system ${system.variant}`}
              onClick={() => setDialog('copy')}
            >
              Copy
            </Button>
          </Group>
        )}
      </Group>
      {missing.length > 0 && (
        <Group gap={6} mb="xs" wrap="nowrap" className={classes.note}>
          <TriangleAlert size={14} aria-hidden />
          <Text size="sm" inherit>
            {[...new Set(missing.map(({ promptId }) => promptId))].join(', ')}: missing in {system.variant}. Runs of
            this variant fail when they need it.
          </Text>
        </Group>
      )}
      <Parts parts={parts} projectId={projectId} variant={system.variant} />
      {dialog && (
        <SystemDialog
          projectId={projectId}
          system={system}
          prompts={prompts}
          isCopy={dialog === 'copy'}
          onClose={() => setDialog(null)}
        />
      )}
    </section>
  )
}

function Parts({ parts, projectId, variant }: { parts: readonly Part[]; projectId: string; variant: string }) {
  return (
    <WideTable name={`Parts of ${variant}`} minWidth={560}>
      <Table.Thead>
        <Table.Tr>
          {['Part', 'Prompt', 'Model', 'Tools'].map((name) => (
            <Table.Th key={name} className="dim" fw={500}>
              {name}
            </Table.Th>
          ))}
        </Table.Tr>
      </Table.Thead>
      <Table.Tbody>
        {parts.map(({ name, promptId, model, tools, description, isMissing }) => (
          <Table.Tr key={name}>
            <Table.Td>
              {name}
              {description && (
                <Text size="xs" className="dim">
                  {description}
                </Text>
              )}
            </Table.Td>
            <Table.Td>
              {isMissing ? (
                <span className={classes.note}>{promptId} is missing</span>
              ) : (
                <Link
                  to="/projects/$projectId/prompts"
                  params={{ projectId }}
                  search={{ prompt: promptId, variant }}
                  aria-label={`${promptId}, ${variant}`}
                >
                  {promptId}
                </Link>
              )}
            </Table.Td>
            <Table.Td className="dim">{model ?? 'default model'}</Table.Td>
            <Table.Td className="dim">{tools.length === 0 ? '–' : tools.join(', ')}</Table.Td>
          </Table.Tr>
        ))}
      </Table.Tbody>
    </WideTable>
  )
}
