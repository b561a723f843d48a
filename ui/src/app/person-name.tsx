// The name of a person of the project.
import { useQuery } from '@tanstack/react-query'
import { peopleQuery } from '../api/objects.ts'
import { useMe } from './gate.tsx'

export function PersonName({ projectId, id }: { projectId: string; id: string | null }) {
  const me = useMe()
  const people = useQuery(peopleQuery(projectId))
  if (id !== null && id === me.id) return <span>you</span>
  const member = people.data?.find(({ user_id }) => user_id === id && id !== null)
  if (member) return <span>{member.name ?? member.email}</span>
  return (
    <span>{people.isPending ? '…' : me.instance_admin ? 'the instance admin or a key' : 'a key or the admin'}</span>
  )
}
