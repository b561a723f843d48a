// A new password, by a link that the instance admin made.
import { Button, PasswordInput, Stack, Text } from '@mantine/core'
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { getRouteApi, useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import type { z } from 'zod'
import type { resetSchema } from '../../../src/kernel/access.ts'
import { ApiError, get, post } from '../api/client.ts'
import { meQuery } from '../api/queries.ts'
import type { Me } from '../api/shapes.ts'
import { Problem } from '../parts/problem.tsx'
import { Failure, Loading } from '../parts/states.tsx'
import { useWrite } from '../parts/use-write.ts'
import { Door } from './door.tsx'

type Reset = z.infer<typeof resetSchema>

const route = getRouteApi('/resets/$token')

export function ResetPage() {
  const { token } = route.useParams()
  const reset = useQuery({
    queryKey: ['reset', token],
    queryFn: () => get<Reset>(`/api/resets/${encodeURIComponent(token)}`),
    refetchOnWindowFocus: false,
  })
  if (reset.data) return <Choose token={token} reset={reset.data} />
  if (reset.error instanceof ApiError && reset.error.status === 404) {
    return (
      <Door title="This link does not work">
        <Text size="sm">It is unknown, was used already, was replaced by a newer one, or its 24 hours are over.</Text>
        <Text size="sm">Ask the instance admin for a new one.</Text>
      </Door>
    )
  }
  return (
    <Door title="New password">
      {reset.error ? (
        <Failure what="The link could not be read." error={reset.error} onRetry={() => void reset.refetch()} />
      ) : (
        <Loading />
      )}
    </Door>
  )
}

function Choose({ token, reset: { email, expires_at } }: { token: string; reset: Reset }) {
  const navigate = useNavigate()
  const client = useQueryClient()
  const { isBusy, problem, refused, write } = useWrite({ fields: ['password'] })
  const [password, setPassword] = useState('')
  const choose = (): void =>
    void write(async () => {
      const me = await post<Me>(`/api/resets/${encodeURIComponent(token)}/accept`, { password })
      client.clear()
      client.setQueryData(meQuery.queryKey, me)
      await navigate({ to: '/' })
    })
  return (
    <Door title="Choose a new password">
      <Text size="sm">For the account {email}. Everybody who is signed in to it now is signed out.</Text>
      <Text size="sm" className="dim">
        The link works until {new Date(expires_at).toLocaleString()}.
      </Text>
      <Problem text={problem} />
      <form
        onSubmit={(event) => {
          event.preventDefault()
          choose()
        }}
      >
        <Stack>
          <input type="hidden" name="username" autoComplete="username" value={email} />
          <PasswordInput
            label="New password"
            description="At least 8 characters."
            autoComplete="new-password"
            required
            minLength={8}
            maxLength={200}
            value={password}
            error={refused.password}
            onChange={(event) => setPassword(event.currentTarget.value)}
          />
          <Button type="submit" loading={isBusy}>
            Set it and sign in
          </Button>
        </Stack>
      </form>
    </Door>
  )
}
