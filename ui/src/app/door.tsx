// The frame of a page for people who are not signed in.
import { Center, Paper, Stack, Title } from '@mantine/core'
import { type ReactNode, useEffect } from 'react'

export function Door({ title, children }: { title: string; children: ReactNode }) {
  useEffect(() => {
    document.title = `${title} · Muster`
  }, [title])
  return (
    <Center component="main" mih="100vh" p="md">
      <Paper withBorder p="xl" w={400} bg="var(--raised)">
        <Stack>
          <Title order={1}>{title}</Title>
          {children}
        </Stack>
      </Paper>
    </Center>
  )
}
