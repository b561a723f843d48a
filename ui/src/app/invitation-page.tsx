// Accepting an invitation: the project it is for, who one is, and in.
import { Alert, Button, PasswordInput, Stack, Text, TextInput } from '@mantine/core'
import { useForm } from '@mantine/form'
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router'
import type { z } from 'zod'
import type { invitationSchema } from '../../../src/kernel/access.ts'
import { ApiError, get, post } from '../api/client.ts'
import { meQuery } from '../api/queries.ts'
import type { Me } from '../api/shapes.ts'
import { Problem } from '../parts/problem.tsx'
import { Failure, Loading } from '../parts/states.tsx'
import { useWrite } from '../parts/use-write.ts'
import { Door } from './door.tsx'

type Invitation = z.infer<typeof invitationSchema>

const route = getRouteApi('/invitations/$token')

export function InvitationPage() {
  const { token } = route.useParams()
  const invitation = useQuery({
    queryKey: ['invitation', token],
    queryFn: () => get<Invitation>(`/api/invitations/${encodeURIComponent(token)}`),
    refetchOnWindowFocus: false,
  })
  const me = useQuery({ ...meQuery, retry: false })
  if (invitation.data && !me.isPending) {
    return <Accept token={token} invitation={invitation.data} myEmail={me.data?.email ?? null} />
  }
  if (invitation.error instanceof ApiError && invitation.error.status === 404) return <Spent />
  return (
    <Door title="Invitation">
      {invitation.error ? (
        <Failure
          what="The invitation could not be read."
          error={invitation.error}
          onRetry={() => void invitation.refetch()}
        />
      ) : (
        <Loading />
      )}
    </Door>
  )
}

const Spent = () => (
  <Door title="This invitation does not work">
    <Text size="sm">It is unknown, was used already, was withdrawn, or its seven days are over.</Text>
    <Text size="sm">
      Ask the person who sent it for a new one. If you have joined already, <Link to="/">sign in</Link>.
    </Text>
  </Door>
)

interface AcceptProps {
  token: string
  invitation: Invitation
  /** The address of the person who is signed in here, or null. */
  myEmail: string | null
}

function Accept({ token, invitation, myEmail }: AcceptProps) {
  const { project, role, email, expires_at } = invitation
  const isMe = myEmail?.toLowerCase() === email.toLowerCase()
  const navigate = useNavigate()
  const client = useQueryClient()
  const { isBusy, problem, refused, write } = useWrite({ fields: ['name', 'password'] })
  const form = useForm({ initialValues: { name: '', password: '' } })
  const accept = form.onSubmit(({ name, password }) =>
    write(async () => {
      const body = isMe ? {} : { password, ...(name.trim() === '' ? {} : { name }) }
      const me = await post<Me>(`/api/invitations/${encodeURIComponent(token)}/accept`, body)
      client.clear()
      client.setQueryData(meQuery.queryKey, me)
      await navigate({ to: '/' })
    }),
  )
  return (
    <Door title={`Join ${project.name}`}>
      <Text size="sm">
        You are invited to the project {project.name} as {role}, with the address {email}. The link works until{' '}
        {new Date(expires_at).toLocaleString()}.
      </Text>
      {myEmail !== null && !isMe && (
        <Alert color="yellow">
          You are signed in as {myEmail}. Accepting signs you in as {email} instead.
        </Alert>
      )}
      <Problem text={problem} />
      <form onSubmit={accept}>
        <Stack>
          {!isMe && (
            <>
              <input type="hidden" name="username" autoComplete="username" value={email} />
              <TextInput
                label="Name"
                description={`Not needed where ${email} has an account on this Muster.`}
                autoComplete="name"
                maxLength={200}
                {...form.getInputProps('name')}
                error={refused.name}
              />
              <PasswordInput
                label="Password"
                description="That of your account, or, if you are new here, one that you choose: at least 8 characters."
                autoComplete="current-password"
                required
                minLength={8}
                maxLength={200}
                {...form.getInputProps('password')}
                error={refused.password}
              />
            </>
          )}
          <Button type="submit" loading={isBusy}>
            Accept
          </Button>
        </Stack>
      </form>
    </Door>
  )
}
