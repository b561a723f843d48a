import { SegmentedControl, Textarea, TextInput } from '@mantine/core'
import { useForm } from '@mantine/form'
import type { McpServer } from '../../../../src/kernel/mcp-server.ts'
import { post } from '../../api/client.ts'
import { projectPath } from '../../api/queries.ts'
import { useMe } from '../../app/gate.tsx'
import { FormDialog } from '../../parts/form-dialog.tsx'
import { useWrite } from '../../parts/use-write.ts'
import { linesOf, pairsFrom } from './pairs.ts'

/** Muster reads the tools of the server before it answers. */
const PATIENCE_MS = 60_000

interface Props {
  projectId: string
  onAdded: (server: McpServer) => void
  onClose: () => void
}

export function McpDialog({ projectId, onAdded, onClose }: Props) {
  const me = useMe()
  const { isBusy, problem, refused, write } = useWrite({ fields: ['name', 'url', 'headers', 'command', 'args', 'env'] })
  const form = useForm({
    initialValues: { name: '', how: 'url', url: '', headers: '', command: '', args: '', env: '' },
    validate: {
      headers: (text) => pairsFrom(text, ':').problem,
      env: (text) => pairsFrom(text, '=').problem,
    },
  })
  const { how } = form.values
  const submit = form.onSubmit((values) =>
    write(async () => {
      const body = { name: values.name, ...(how === 'url' ? addressed(values) : started(values)) }
      const path = projectPath(projectId, '/mcp-servers')
      onAdded(await post<McpServer>(path, body, { patienceMs: PATIENCE_MS }))
    }),
  )
  return (
    <FormDialog
      title="Add MCP server"
      action="Add server"
      write={{ isBusy, problem }}
      onSubmit={() => submit()}
      onClose={onClose}
    >
      <TextInput
        label="Name"
        required
        maxLength={63}
        data-autofocus
        {...form.getInputProps('name')}
        error={refused.name}
      />
      {me.instance_admin && (
        <SegmentedControl
          aria-label="How it is reached"
          size="xs"
          data={[
            { value: 'url', label: 'By its address' },
            { value: 'command', label: 'By a command' },
          ]}
          {...form.getInputProps('how')}
        />
      )}
      {how === 'url' ? (
        <>
          <TextInput
            label="URL"
            description="A server that speaks streamable HTTP."
            required
            {...form.getInputProps('url')}
            error={refused.url}
          />
          <Textarea
            label="Headers"
            description="One per line, such as Authorization: Bearer … They are stored encrypted and are never shown."
            autosize
            minRows={1}
            {...form.getInputProps('headers')}
            error={form.errors.headers ?? refused.headers}
          />
        </>
      ) : (
        <>
          <TextInput
            label="Command"
            description="A program on the server's machine. No shell reads it."
            required
            {...form.getInputProps('command')}
            error={refused.command}
          />
          <Textarea
            label="Arguments"
            description="One per line."
            autosize
            minRows={1}
            {...form.getInputProps('args')}
            error={refused.args}
          />
          <Textarea
            label="Variables"
            description="One per line, as NAME=value. They are stored encrypted and are never shown."
            autosize
            minRows={1}
            {...form.getInputProps('env')}
            error={form.errors.env ?? refused.env}
          />
        </>
      )}
    </FormDialog>
  )
}

function addressed({ url, headers }: { url: string; headers: string }) {
  const { pairs } = pairsFrom(headers, ':')
  return { url: url.trim(), ...(Object.keys(pairs).length > 0 && { headers: pairs }) }
}

function started({ command, args, env }: { command: string; args: string; env: string }) {
  const { pairs } = pairsFrom(env, '=')
  const given = linesOf(args)
  return {
    command: command.trim(),
    ...(given.length > 0 && { args: given }),
    ...(Object.keys(pairs).length > 0 && { env: pairs }),
  }
}
