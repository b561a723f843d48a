// The addresses at which other systems start the agent. A secret is shown once, when it is made.
import { Alert, Button, Group, Modal, Stack, Text, TextInput, Title } from '@mantine/core'
import { useInfiniteQuery, useQueryClient } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import type { Agent } from '../../../../src/kernel/agent.ts'
import type { Hook, NewHook } from '../../../../src/kernel/hook.ts'
import { agentPath, hookPagesQuery } from '../../api/agents.ts'
import { post, remove } from '../../api/client.ts'
import { useRole } from '../../app/role.ts'
import { Confirm } from '../../parts/confirm.tsx'
import { More } from '../../parts/more.tsx'
import { Problem } from '../../parts/problem.tsx'
import { Empty, Failure, Loading } from '../../parts/states.tsx'
import { tell, useWrite } from '../../parts/use-write.ts'
import { When } from '../../parts/when.tsx'
import { Copyable } from './agent-pieces.tsx'
import classes from './agents.module.css'

type Asked = { hook: Hook; about: 'rotate' | 'delete' }

export function AgentHooks({ agent }: { agent: Agent }) {
  const isAdmin = useRole(agent.project_id) === 'admin'
  const list = useInfiniteQuery(hookPagesQuery(agent.project_id, agent.id))
  const [fresh, setFresh] = useState<NewHook | null>(null)
  const [asked, setAsked] = useState<Asked | null>(null)
  const hooks = list.data?.pages.flatMap(({ items }) => items) ?? []
  return (
    <section aria-label="Webhooks">
      <Title order={2} mb="sm">
        Webhooks
      </Title>
      {isAdmin && <NewHookForm agent={agent} onMade={setFresh} />}
      {list.isPending && <Loading />}
      {list.isError && !list.data && (
        <Failure what="The hooks could not be read." error={list.error} onRetry={() => void list.refetch()} />
      )}
      {list.data && hooks.length === 0 && <Empty>No hook yet: no other system can start this agent.</Empty>}
      {hooks.length > 0 && (
        <ul className={classes.items} aria-label="Hooks">
          {hooks.map((hook) => (
            <HookLine key={hook.id} hook={hook} onAsk={isAdmin ? (about) => setAsked({ hook, about }) : null} />
          ))}
        </ul>
      )}
      <More list={list} />
      {asked && <HookDialog agent={agent} asked={asked} onClose={() => setAsked(null)} onMade={setFresh} />}
      {fresh && <SecretDialog hook={fresh} onClose={() => setFresh(null)} />}
    </section>
  )
}

function NewHookForm({ agent, onMade }: { agent: Agent; onMade: (hook: NewHook) => void }) {
  const [name, setName] = useState('')
  const { write, isBusy, problem, refused } = useWrite({ reads: [['agent', agent.project_id]], fields: ['name'] })
  const create = (event: FormEvent): void => {
    event.preventDefault()
    void write(async () => {
      onMade(await post<NewHook>(agentPath(agent.project_id, agent.id, '/hooks'), { name: name.trim() }))
      setName('')
    })
  }
  return (
    <form onSubmit={create} aria-label="New hook">
      <Problem text={problem} />
      <Group align="flex-end" gap="xs" mb="sm">
        <TextInput
          label="Name"
          size="xs"
          placeholder="github"
          maxLength={200}
          autoComplete="off"
          value={name}
          error={refused.name}
          onChange={(event) => setName(event.currentTarget.value)}
        />
        <Button size="xs" type="submit" loading={isBusy} disabled={name.trim() === ''}>
          Create hook
        </Button>
      </Group>
    </form>
  )
}

function HookLine({ hook, onAsk }: { hook: Hook; onAsk: ((about: Asked['about']) => void) | null }) {
  const { name, url, last_used_at, created_at, old_secret_until } = hook
  return (
    <li aria-label={name}>
      <Group justify="space-between" gap="xs" mb={4}>
        <div style={{ minWidth: 0, overflowWrap: 'anywhere' }}>
          <Text size="sm" fw={600}>
            {name}
          </Text>
          <Text size="xs" className="dim">
            {last_used_at ? 'used ' : 'never used'}
            {last_used_at && <When at={last_used_at} />} · created <When at={created_at} />
            {old_secret_until && ' · old secret until '}
            {old_secret_until && <When at={old_secret_until} />}
          </Text>
        </div>
        {onAsk && (
          <Group gap="xs">
            <Button
              size="compact-sm"
              variant="default"
              aria-label={`Rotate the secret of ${name}`}
              onClick={() => onAsk('rotate')}
            >
              Rotate
            </Button>
            <Button
              size="compact-sm"
              variant="light"
              color="red"
              aria-label={`Delete the hook ${name}`}
              onClick={() => onAsk('delete')}
            >
              Delete
            </Button>
          </Group>
        )}
      </Group>
      <Copyable label={`URL of ${name}`} value={url} isLabelShown={false} />
    </li>
  )
}

function HookDialog(props: { agent: Agent; asked: Asked; onClose: () => void; onMade: (hook: NewHook) => void }) {
  const { agent, onClose, onMade } = props
  const { hook, about } = props.asked
  const client = useQueryClient()
  const path = agentPath(agent.project_id, agent.id, `/hooks/${hook.id}`)
  const readAgain = (): Promise<void> => client.invalidateQueries({ queryKey: ['agent', agent.project_id] })
  const question =
    about === 'rotate'
      ? {
          title: `Rotate the secret of ${hook.name}?`,
          text: 'The hook gets a new secret. The present one holds for 24 hours more; one before that ends at once.',
          action: 'Rotate',
          refusal: 'Cancel',
          isHarmless: true,
          onYes: async () => {
            onMade(await post<NewHook>(`${path}/rotate`))
            await readAgain()
          },
        }
      : {
          title: `Delete the hook ${hook.name}?`,
          text: 'Deliveries to its address are refused from then on. This cannot be undone.',
          action: 'Delete',
          refusal: 'Cancel',
          onYes: async () => {
            await remove(path)
            tell(`The hook ${hook.name} is deleted.`)
            await readAgain()
          },
        }
  return <Confirm question={question} onClose={onClose} />
}

function SecretDialog({ hook, onClose }: { hook: NewHook; onClose: () => void }) {
  const example = `curl -X POST ${hook.url} -H 'authorization: Bearer ${hook.secret}' -H 'content-type: application/json' -d '{}'`
  return (
    <Modal
      opened
      size="lg"
      onClose={onClose}
      closeOnClickOutside={false}
      title={`The secret of ${hook.name}`}
      closeButtonProps={{ 'aria-label': 'Close' }}
    >
      <Stack>
        <Alert color="yellow">The secret is shown only now. Copy it before you close this.</Alert>
        <Copyable label="Secret" value={hook.secret} />
        <Copyable label="URL" value={hook.url} />
        <Copyable label="Try it" value={example} />
        <Text size="sm" className="dim">
          Senders sign with the secret (Standard Webhooks), or send it as “Authorization: Bearer …”. The body is the
          input of the run.
        </Text>
        <Group justify="flex-end">
          <Button size="xs" onClick={onClose}>
            Done
          </Button>
        </Group>
      </Stack>
    </Modal>
  )
}
