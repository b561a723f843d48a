import { Button, Group, NumberInput, Stack, Text, Textarea } from '@mantine/core'
import { useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import type { Settings } from '../../../../src/kernel/project.ts'
import { patch } from '../../api/client.ts'
import { projectPath } from '../../api/queries.ts'
import { settingsQuery } from '../../api/settings.ts'
import { LeaveGuard } from '../../parts/leave-guard.tsx'
import { Problem } from '../../parts/problem.tsx'
import { tell, useWrite } from '../../parts/use-write.ts'
import {
  aboutLimit,
  changesIn,
  LIMIT_GROUPS,
  LIMIT_NAMES,
  limitProblem,
  type Typed,
  typedFrom,
} from './limit-fields.ts'
import { Section } from './section.tsx'
import classes from './settings.module.css'

const ORDER: ('label' | 'input' | 'description' | 'error')[] = ['label', 'input', 'description', 'error']
const HINT = { description: { fontSize: 11 } }

interface Props {
  projectId: string
  settings: Settings
  isAdmin: boolean
}

export function LimitsForm({ projectId, settings, isAdmin }: Props) {
  const client = useQueryClient()
  const { isBusy, problem, refused, write } = useWrite({ fields: LIMIT_NAMES })
  // Only the fields that were typed in are kept here; the others follow the server.
  const [edits, setEdits] = useState<Partial<Typed>>({})
  const typed: Typed = { ...typedFrom(settings), ...edits }
  const changes = changesIn(typed, settings)
  const count = Object.keys(changes).length
  const save = (): void =>
    void write(async () => {
      const saved = await patch<Settings>(projectPath(projectId, '/settings'), changes)
      client.setQueryData(settingsQuery(projectId).queryKey, saved)
      setEdits({})
      tell('The limits are saved.')
    })
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault()
        save()
      }}
    >
      <LeaveGuard of="these limits" isDirty={count > 0} />
      <Stack gap="xl">
        {LIMIT_GROUPS.map(({ name: group, fields }) => (
          <Section key={group} name={group}>
            <div className={classes.grid}>
              {fields.map(({ name, label, unit, isOptional }) => (
                <NumberInput
                  key={name}
                  label={label}
                  description={aboutLimit(name)}
                  inputWrapperOrder={ORDER}
                  styles={HINT}
                  size="xs"
                  min={0}
                  hideControls
                  thousandSeparator=" "
                  suffix={unit === 'seconds' ? ' s' : ''}
                  placeholder={isOptional ? 'no limit' : ''}
                  required={!isOptional}
                  withAsterisk={false}
                  readOnly={!isAdmin}
                  value={typed[name]}
                  error={limitProblem(name, refused[name])}
                  onChange={(value) => setEdits({ ...edits, [name]: value })}
                />
              ))}
              {group === 'Flows and data' && (
                <Textarea
                  label="Hosts that heed Idempotency-Key"
                  description={`${aboutLimit('idempotent_hosts')} One per line.`}
                  inputWrapperOrder={ORDER}
                  styles={HINT}
                  size="xs"
                  autosize
                  minRows={1}
                  readOnly={!isAdmin}
                  value={typed.idempotent_hosts}
                  error={refused.idempotent_hosts}
                  onChange={(event) => setEdits({ ...edits, idempotent_hosts: event.currentTarget.value })}
                />
              )}
            </div>
          </Section>
        ))}
        <Problem text={problem} />
        {isAdmin && (
          <Group>
            <Button size="xs" type="submit" loading={isBusy} disabled={count === 0}>
              Save
            </Button>
            {count > 0 && (
              <Button size="xs" variant="default" onClick={() => setEdits({})}>
                Undo
              </Button>
            )}
            <Text size="sm" className="dim" role="status">
              {count === 0 ? '' : `${count} ${count === 1 ? 'limit is' : 'limits are'} changed and not saved yet.`}
            </Text>
          </Group>
        )}
      </Stack>
    </form>
  )
}
