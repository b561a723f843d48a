// Shows the sign-in page until the session is read; then provides the signed-in person (`useMe`).
import { Center } from '@mantine/core'
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { createContext, type ReactNode, use, useEffect, useState } from 'react'
import { ApiError, onSignedOut, post } from '../api/client.ts'
import { meQuery } from '../api/queries.ts'
import type { Me } from '../api/shapes.ts'
import { lazily } from '../parts/lazily.tsx'
import { Panel } from '../parts/panel.tsx'
import { Failure, Loading } from '../parts/states.tsx'
import type { Reason } from './sign-in.tsx'

const SignIn = lazily(() => import('./sign-in.tsx').then((module) => module.SignIn))

const Person = createContext<Me | null>(null)

/** The person who is signed in. */
export function useMe(): Me {
  const me = use(Person)
  if (!me) throw new Error('useMe is called outside of the gate')
  return me
}

/** Ends the session, and forgets all that was read in it. */
export function useSignOut(): () => Promise<void> {
  const client = useQueryClient()
  return async () => {
    await post('/api/auth/sign-out').catch(() => {})
    client.removeQueries({ predicate: ({ queryKey }) => queryKey[0] !== meQuery.queryKey[0] })
    await client.resetQueries({ queryKey: meQuery.queryKey })
  }
}

export function Gate({ children }: { children: ReactNode }) {
  const client = useQueryClient()
  const [reason, setReason] = useState<Reason | null>(reasonInAddress)
  const me = useQuery(meQuery)
  useEffect(
    () =>
      onSignedOut(() => {
        setReason('ended')
        void client.resetQueries({ queryKey: meQuery.queryKey })
      }),
    [client],
  )
  useEffect(() => {
    if (me.data) setReason(null)
  }, [me.data])
  // A refusal goes before the data of the session that has ended.
  if (me.error instanceof ApiError && me.error.status === 401) {
    return (
      <Panel name="The sign-in">
        <SignIn reason={reason} />
      </Panel>
    )
  }
  if (me.data) return <Person value={me.data}>{children}</Person>
  if (me.isPending) return <Loading lines={6} />
  return (
    <Center mih="60vh">
      <Failure error={me.error} what="Who you are could not be read." onRetry={() => void me.refetch()} />
    </Center>
  )
}

/** A sign-in link that was used before leads here. */
function reasonInAddress(): Reason | null {
  if (new URLSearchParams(location.search).get('sign_in') !== 'expired') return null
  history.replaceState(null, '', location.pathname)
  return 'expired'
}
