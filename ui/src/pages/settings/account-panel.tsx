// The signed-in person: their password, and where else they are signed in.
import { Button, Group, PasswordInput, Stack, Text } from '@mantine/core'
import { useForm } from '@mantine/form'
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import type { ListedSession } from '../../../../src/kernel/access.ts'
import { post, remove } from '../../api/client.ts'
import { meQuery } from '../../api/queries.ts'
import { sessionsQuery } from '../../api/settings.ts'
import { useMe } from '../../app/gate.tsx'
import { Confirm, type Question } from '../../parts/confirm.tsx'
import { Problem } from '../../parts/problem.tsx'
import { Failure, Loading, Stale } from '../../parts/states.tsx'
import { tell, useWrite } from '../../parts/use-write.ts'
import { When } from '../../parts/when.tsx'
import { browserOf } from './browser-name.ts'
import { Section } from './section.tsx'
import classes from './settings.module.css'

export function AccountPanel() {
  return (
    <>
      <Password />
      <Sessions />
    </>
  )
}

function Password() {
  const me = useMe()
  const client = useQueryClient()
  const { isBusy, problem, refused, write } = useWrite({ fields: ['current_password', 'new_password'] })
  const form = useForm({ initialValues: { current: '', next: '' } })
  const submit = form.onSubmit(({ current, next }) =>
    write(async () => {
      const body = { new_password: next, ...(current !== '' && { current_password: current }) }
      await post('/api/auth/password', body)
      form.reset()
      tell('The password is set. Your other sessions have ended.')
      await client.invalidateQueries({ queryKey: meQuery.queryKey })
      await client.invalidateQueries({ queryKey: sessionsQuery.queryKey })
    }),
  )
  return (
    <Section
      name="Password"
      about={
        me.has_password
          ? `You sign in as ${me.email}.`
          : `You sign in as ${me.email}, by a link that works once. With a password you need none.`
      }
    >
      <form onSubmit={submit}>
        <Stack maw={340}>
          <Problem text={problem} />
          <input type="hidden" name="username" autoComplete="username" value={me.email ?? ''} />
          {me.has_password && (
            <PasswordInput
              label="Current password"
              size="xs"
              autoComplete="current-password"
              required
              {...form.getInputProps('current')}
              error={refused.current_password}
            />
          )}
          <PasswordInput
            label="New password"
            description="At least 8 characters. Your other sessions end."
            size="xs"
            autoComplete="new-password"
            required
            minLength={8}
            maxLength={200}
            {...form.getInputProps('next')}
            error={refused.new_password}
          />
          <Group>
            <Button size="xs" type="submit" loading={isBusy}>
              Set password
            </Button>
          </Group>
        </Stack>
      </form>
    </Section>
  )
}

function Sessions() {
  const client = useQueryClient()
  const sessions = useQuery(sessionsQuery)
  const [question, setQuestion] = useState<Question | null>(null)
  const askEnd = ({ id, user_agent }: ListedSession): void =>
    setQuestion({
      title: 'End this session?',
      text: `${browserOf(user_agent)} is signed out at once.`,
      action: 'End session',
      onYes: async () => {
        await remove(`/api/auth/sessions/${id}`)
        await client.invalidateQueries({ queryKey: sessionsQuery.queryKey })
        tell('The session has ended.')
      },
    })
  return (
    <Section name="Sessions" about="Where you are signed in.">
      {sessions.isPending && <Loading lines={2} />}
      {sessions.isError && !sessions.data && (
        <Failure
          what="Your sessions could not be read."
          error={sessions.error}
          onRetry={() => void sessions.refetch()}
        />
      )}
      {sessions.isError && sessions.data && <Stale onRetry={() => void sessions.refetch()} />}
      {sessions.data && (
        <ul className={classes.list} aria-label="Sessions">
          {sessions.data.items.map((session) => (
            <li key={session.id} className={classes.row}>
              <div className={classes.facts}>
                <Group gap="xs">
                  <Text fw={500} title={session.user_agent ?? ''}>
                    {browserOf(session.user_agent)}
                  </Text>
                  {session.current && <span className={classes.tag}>this one</span>}
                </Group>
                <Text size="sm" className="dim">
                  {session.address !== null && `${session.address} · `}seen <When at={session.last_seen_at} />
                  {' · ends '}
                  <When at={session.expires_at} />
                </Text>
              </div>
              {!session.current && (
                <Button size="compact-sm" variant="subtle" color="red" onClick={() => askEnd(session)}>
                  End
                </Button>
              )}
            </li>
          ))}
        </ul>
      )}
      <Confirm question={question} onClose={() => setQuestion(null)} />
    </Section>
  )
}
