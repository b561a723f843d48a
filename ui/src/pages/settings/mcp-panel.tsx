// MCP servers of the project. A tool is called only as it was approved.
import { Alert, Button, Group, Text } from '@mantine/core'
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { Plus } from 'lucide-react'
import { useState } from 'react'
import type { McpServer, McpToolEntry } from '../../../../src/kernel/mcp-server.ts'
import { post, remove } from '../../api/client.ts'
import { projectPath } from '../../api/queries.ts'
import { mcpServersQuery } from '../../api/settings.ts'
import { useRole } from '../../app/role.ts'
import { Confirm, type Question } from '../../parts/confirm.tsx'
import { Empty, Failure, Loading, Stale } from '../../parts/states.tsx'
import { tell, useWrite } from '../../parts/use-write.ts'
import { McpDialog } from './mcp-dialog.tsx'
import { Section } from './section.tsx'
import classes from './settings.module.css'
import { toolChanges } from './tool-changes.ts'

export function McpPanel({ projectId }: { projectId: string }) {
  const client = useQueryClient()
  const isAdmin = useRole(projectId) === 'admin'
  const query = mcpServersQuery(projectId)
  const servers = useQuery(query)
  const [isAdding, setIsAdding] = useState(false)
  const [question, setQuestion] = useState<Question | null>(null)
  const askDelete = (name: string): void =>
    setQuestion({
      title: `Delete the MCP server ${name}?`,
      text: 'Its tools are not called any more. Agents that name them are told so.',
      action: 'Delete',
      onYes: async () => {
        await remove(projectPath(projectId, `/mcp-servers/${encodeURIComponent(name)}`))
        await client.invalidateQueries({ queryKey: query.queryKey })
        tell(`The MCP server ${name} is deleted.`)
      },
    })
  return (
    <Section
      name="MCP servers"
      about="Servers that give agents more tools. Agents name a tool as mcp:server/tool."
      action={
        isAdmin && (
          <Button size="xs" leftSection={<Plus size={13} aria-hidden />} onClick={() => setIsAdding(true)}>
            Add server
          </Button>
        )
      }
    >
      {servers.isPending && <Loading />}
      {servers.isError && !servers.data && (
        <Failure what="The servers could not be read." error={servers.error} onRetry={() => void servers.refetch()} />
      )}
      {servers.isError && servers.data && <Stale onRetry={() => void servers.refetch()} />}
      {servers.data?.items.length === 0 && <Empty>No MCP server yet. Add one to give agents its tools.</Empty>}
      {servers.data && servers.data.items.length > 0 && (
        <ul className={classes.list} aria-label="MCP servers">
          {servers.data.items.map((server) => (
            <ServerRow
              key={server.id}
              server={server}
              isAdmin={isAdmin}
              onDelete={() => askDelete(server.name)}
              onChanged={() => void client.invalidateQueries({ queryKey: query.queryKey })}
            />
          ))}
        </ul>
      )}
      {isAdding && (
        <McpDialog
          projectId={projectId}
          onClose={() => setIsAdding(false)}
          onAdded={({ name, tools }) => {
            setIsAdding(false)
            tell(`The MCP server ${name} is added, with ${tools.length} ${tools.length === 1 ? 'tool' : 'tools'}.`)
            void client.invalidateQueries({ queryKey: query.queryKey })
          }}
        />
      )}
      <Confirm question={question} onClose={() => setQuestion(null)} />
    </Section>
  )
}

interface RowProps {
  server: McpServer
  isAdmin: boolean
  onDelete: () => void
  onChanged: () => void
}

function ServerRow({ server, isAdmin, onDelete, onChanged }: RowProps) {
  const { name, url, command, args, tools, header_names, env_names, pending_tools } = server
  const secrets = [...header_names, ...env_names]
  return (
    <li className={classes.row}>
      <div className={classes.facts}>
        <Text fw={500}>{name}</Text>
        <Text size="sm" className="dim">
          {url ?? [command, ...args].join(' ')}
          {secrets.length > 0 && ` · with ${secrets.join(', ')}`}
        </Text>
      </div>
      {isAdmin && (
        <Button size="compact-sm" variant="subtle" color="red" aria-label={`Delete ${name}`} onClick={onDelete}>
          Delete
        </Button>
      )}
      {pending_tools && (
        <div className={classes.wide}>
          <Pending server={server} offered={pending_tools} isAdmin={isAdmin} onChanged={onChanged} />
        </div>
      )}
      <details className={classes.wide}>
        <summary>
          {tools.length} approved {tools.length === 1 ? 'tool' : 'tools'}
        </summary>
        <ul className={classes.tools} aria-label={`Tools of ${name}`}>
          {tools.map((tool) => (
            <ToolLine key={tool.name} tool={tool} />
          ))}
        </ul>
      </details>
    </li>
  )
}

function ToolLine({ tool: { name, description, effect } }: { tool: McpToolEntry }) {
  return (
    <li>
      <span className="mono">{name}</span> <span className={classes.tag}>{effect}</span>{' '}
      <span className="dim">{description}</span>
    </li>
  )
}

interface PendingProps {
  server: McpServer
  offered: McpToolEntry[]
  isAdmin: boolean
  onChanged: () => void
}

/** The differences between the tools that were approved and those that are offered now. */
function Pending({ server, offered, isAdmin, onChanged }: PendingProps) {
  const { isBusy, write } = useWrite({ isToldAside: true })
  const approve = async (): Promise<void> => {
    const path = projectPath(server.project_id, `/mcp-servers/${encodeURIComponent(server.name)}/approve`)
    const body = { hashes: offered.map(({ hash }) => hash) }
    await write(() => post(path, body, { patienceMs: 60_000 }), `The tools of ${server.name} are approved.`)
    // The server may offer other tools by now, which is a reason for a refusal.
    onChanged()
  }
  return (
    <Alert color="yellow" title="The server offers other tools than were approved">
      <Text size="sm">Until they are approved, changed and new tools are refused.</Text>
      <ul className={classes.tools} aria-label={`Changes of ${server.name}`}>
        {toolChanges(server.tools, offered).map(({ change, tool }) => (
          <li key={tool.name}>
            <strong>{change}</strong>: <span className="mono">{tool.name}</span>{' '}
            <span className="dim">{tool.description}</span>
          </li>
        ))}
      </ul>
      {isAdmin && (
        <Group mt="sm">
          <Button size="compact-sm" loading={isBusy} onClick={() => void approve()}>
            Approve
          </Button>
        </Group>
      )}
    </Alert>
  )
}
