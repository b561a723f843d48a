// The form for people who are not signed in.
import { Alert, Anchor, Button, Center, Code, Paper, PasswordInput, Stack, Text, TextInput, Title } from '@mantine/core'
import { useForm } from '@mantine/form'
import { useQueryClient } from '@tanstack/react-query'
import { useEffect } from 'react'
import { post } from '../api/client.ts'
import { meQuery } from '../api/queries.ts'
import type { Me } from '../api/shapes.ts'
import { Problem } from '../parts/problem.tsx'
import { useWrite } from '../parts/use-write.ts'

const REASONS = {
  expired: 'That sign-in link was used already, or its hour is over.',
  ended: 'Your session has ended. Sign in again to go on.',
}

export type Reason = keyof typeof REASONS

export function SignIn({ reason }: { reason: Reason | null }) {
  const client = useQueryClient()
  const { problem, refused, write } = useWrite({ fields: ['email', 'password'] })
  const form = useForm({ initialValues: { email: '', password: '' } })
  useEffect(() => {
    document.title = 'Sign in · Muster'
  }, [])
  const submit = form.onSubmit((values) =>
    write(async () => client.setQueryData(meQuery.queryKey, await post<Me>('/api/auth/sign-in', values))),
  )
  return (
    <Center component="main" mih="100vh" p="md">
      <Paper withBorder p="xl" w={380} bg="var(--raised)">
        <form onSubmit={submit}>
          <Stack>
            <Title order={1}>Muster</Title>
            <Text className="dim">Runs teams of AI agents that people can trust with real work.</Text>
            {reason && <Alert color="yellow">{REASONS[reason]}</Alert>}
            <Problem text={problem} />
            <TextInput
              label="Email"
              type="email"
              autoComplete="username"
              required
              {...form.getInputProps('email')}
              error={refused.email}
            />
            <PasswordInput
              label="Password"
              autoComplete="current-password"
              required
              {...form.getInputProps('password')}
              error={refused.password}
            />
            <Button type="submit" loading={form.submitting}>
              Sign in
            </Button>
            <Text size="sm" className="dim">
              No password yet? Every start prints a sign-in link that works once. A new one comes from{' '}
              <Code>npm run muster -- keys link</Code>. Everything here is in the <Anchor href="/docs">API</Anchor>,
              too.
            </Text>
          </Stack>
        </form>
      </Paper>
    </Center>
  )
}
