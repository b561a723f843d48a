import { Stack, Text, Title } from '@mantine/core'
import { Link } from '@tanstack/react-router'

export function Unknown() {
  return (
    <Stack p="xl" align="flex-start">
      <Title order={1}>There is nothing at this address</Title>
      <Text className="dim">It may have been deleted, or the address is wrong.</Text>
      <Link to="/">Go home</Link>
    </Stack>
  )
}
