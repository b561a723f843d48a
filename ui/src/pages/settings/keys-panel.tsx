// Keys with which programs work in the project.
import { Button, Group, Select, Text, TextInput } from '@mantine/core'
import { useForm } from '@mantine/form'
import { useInfiniteQuery, useQueryClient } from '@tanstack/react-query'
import { Plus } from 'lucide-react'
import { useState } from 'react'
import type { z } from 'zod'
import type { Key, newKeySchema } from '../../../../src/kernel/access.ts'
import { post, remove, serverNow } from '../../api/client.ts'
import { projectPath } from '../../api/queries.ts'
import { keysQuery } from '../../api/settings.ts'
import { Confirm, type Question } from '../../parts/confirm.tsx'
import { FormDialog } from '../../parts/form-dialog.tsx'
import { PagedList } from '../../parts/paged-list.tsx'
import { ShownOnce } from '../../parts/shown-once.tsx'
import { tell, useWrite } from '../../parts/use-write.ts'
import { When } from '../../parts/when.tsx'
import { RoleSelect } from './role-select.tsx'
import { Section } from './section.tsx'
import classes from './settings.module.css'

type NewKey = z.infer<typeof newKeySchema>

const DAY_MS = 24 * 60 * 60_000

export function KeysPanel({ projectId }: { projectId: string }) {
  const client = useQueryClient()
  const keys = useInfiniteQuery(keysQuery(projectId))
  const [isCreating, setIsCreating] = useState(false)
  const [fresh, setFresh] = useState<NewKey | null>(null)
  const [question, setQuestion] = useState<Question | null>(null)
  const reread = (): Promise<void> => client.invalidateQueries({ queryKey: ['key', projectId] })
  const askRevoke = ({ id, name }: Key): void =>
    setQuestion({
      title: `Revoke the key ${name}?`,
      text: 'Programs that use it are refused within five seconds. This cannot be taken back.',
      action: 'Revoke',
      onYes: async () => {
        await remove(projectPath(projectId, `/keys/${id}`))
        setFresh(null)
        await reread()
        tell(`The key ${name} is revoked.`)
      },
    })
  return (
    <Section
      name="Keys"
      about="Programs use a key to work in this project."
      action={
        <Button size="xs" leftSection={<Plus size={13} aria-hidden />} onClick={() => setIsCreating(true)}>
          Create key
        </Button>
      }
    >
      {fresh && (
        <ShownOnce
          title={`The key ${fresh.name}`}
          value={fresh.key}
          hint="It is shown only now. Send it as “Authorization: Bearer …”."
          onClose={() => setFresh(null)}
        />
      )}
      <PagedList of={keys} what="keys" empty="No key yet. Create one for the first program.">
        {(items) => (
          <ul className={classes.list} aria-label="Keys">
            {items.map((key) => (
              <KeyRow key={key.id} of={key} onRevoke={() => askRevoke(key)} />
            ))}
          </ul>
        )}
      </PagedList>
      {isCreating && (
        <CreateDialog
          projectId={projectId}
          onClose={() => setIsCreating(false)}
          onCreated={(key) => {
            setIsCreating(false)
            setFresh(key)
            void reread()
          }}
        />
      )}
      <Confirm question={question} onClose={() => setQuestion(null)} />
    </Section>
  )
}

function KeyRow({ of: key, onRevoke }: { of: Key; onRevoke: () => void }) {
  return (
    <li className={classes.row}>
      <div className={classes.facts}>
        <Group gap="xs">
          <Text fw={500}>{key.name}</Text>
          <span className={classes.tag}>{key.role}</span>
          <span className="mono dim">{key.prefix}…</span>
        </Group>
        <Text size="sm" className="dim">
          {key.last_used_at === null ? (
            'never used'
          ) : (
            <>
              used <When at={key.last_used_at} />
            </>
          )}
          {' · created '}
          <When at={key.created_at} />
          {key.expires_at !== null && (
            <>
              {' · ends '}
              <When at={key.expires_at} />
            </>
          )}
        </Text>
      </div>
      <Button size="compact-sm" variant="subtle" color="red" aria-label={`Revoke ${key.name}`} onClick={onRevoke}>
        Revoke
      </Button>
    </li>
  )
}

const ENDS = [
  { value: '', label: 'never' },
  { value: '30', label: 'in 30 days' },
  { value: '90', label: 'in 90 days' },
  { value: '365', label: 'in a year' },
]

function CreateDialog(props: { projectId: string; onCreated: (key: NewKey) => void; onClose: () => void }) {
  const { isBusy, problem, refused, write } = useWrite({ fields: ['name', 'role', 'expires_at'] })
  const form = useForm({ initialValues: { name: '', role: 'member', days: '' } })
  const submit = form.onSubmit(({ name, role, days }) =>
    write(async () => {
      const expires_at = days === '' ? null : new Date(serverNow() + Number(days) * DAY_MS).toISOString()
      props.onCreated(await post<NewKey>(projectPath(props.projectId, '/keys'), { name, role, expires_at }))
    }),
  )
  return (
    <FormDialog
      title="Create key"
      action="Create key"
      write={{ isBusy, problem }}
      onSubmit={() => submit()}
      onClose={props.onClose}
    >
      <TextInput
        label="Name"
        description="The program that will use it."
        required
        maxLength={200}
        data-autofocus
        {...form.getInputProps('name')}
        error={refused.name}
      />
      <RoleSelect {...form.getInputProps('role')} error={refused.role} />
      <Select
        label="Ends"
        data={ENDS}
        allowDeselect={false}
        {...form.getInputProps('days')}
        error={refused.expires_at}
      />
    </FormDialog>
  )
}
