// The people of the project, and open invitations.
import { Button, Group, Select, Text, TextInput } from '@mantine/core'
import { useForm } from '@mantine/form'
import { useInfiniteQuery, useQueryClient } from '@tanstack/react-query'
import { UserPlus } from 'lucide-react'
import { useState } from 'react'
import type { z } from 'zod'
import type { invitedMemberSchema, Member, resetLinkSchema } from '../../../../src/kernel/access.ts'
import { roles } from '../../../../src/kernel/role.ts'
import { patch, post, remove } from '../../api/client.ts'
import { meQuery, projectPath } from '../../api/queries.ts'
import { membersQuery } from '../../api/settings.ts'
import { useMe } from '../../app/gate.tsx'
import { useRole } from '../../app/role.ts'
import { Confirm, type Question } from '../../parts/confirm.tsx'
import { FormDialog } from '../../parts/form-dialog.tsx'
import { PagedList } from '../../parts/paged-list.tsx'
import { ShownOnce } from '../../parts/shown-once.tsx'
import { tell, useWrite } from '../../parts/use-write.ts'
import { When } from '../../parts/when.tsx'
import { RoleSelect } from './role-select.tsx'
import { Section } from './section.tsx'
import classes from './settings.module.css'

interface FreshLink {
  title: string
  value: string
  hint: string
}

export function MembersPanel({ projectId }: { projectId: string }) {
  const isAdmin = useRole(projectId) === 'admin'
  const members = useInfiniteQuery(membersQuery(projectId))
  const [isInviting, setIsInviting] = useState(false)
  const [link, setLink] = useState<FreshLink | null>(null)
  const [question, setQuestion] = useState<Question | null>(null)
  const ask = useQuestions(projectId, setLink)
  return (
    <Section
      name="Members"
      about="Muster sends no mail: you send the invitation link yourself."
      action={
        isAdmin && (
          <Button size="xs" leftSection={<UserPlus size={13} aria-hidden />} onClick={() => setIsInviting(true)}>
            Invite
          </Button>
        )
      }
    >
      {link && <ShownOnce key={link.value} {...link} onClose={() => setLink(null)} />}
      <PagedList of={members} what="members" empty="Nobody yet. Invite the first person.">
        {(items) => (
          <ul className={classes.list} aria-label="Members">
            {items.map((member) => (
              <MemberRow
                key={member.id}
                member={member}
                isAdmin={isAdmin}
                onReset={() => setQuestion(ask.reset(member))}
                onRemove={() => setQuestion(ask.remove(member))}
              />
            ))}
          </ul>
        )}
      </PagedList>
      {isInviting && (
        <InviteDialog
          projectId={projectId}
          onClose={() => setIsInviting(false)}
          onInvited={(fresh) => {
            setIsInviting(false)
            setLink(fresh)
          }}
        />
      )}
      <Confirm question={question} onClose={() => setQuestion(null)} />
    </Section>
  )
}

function useQuestions(projectId: string, onLink: (link: FreshLink | null) => void) {
  const client = useQueryClient()
  const removeMember = ({ id, email, status }: Member): Question => ({
    title: `Remove ${email}?`,
    text: status === 'invited' ? 'The invitation link stops working.' : 'They lose access to the project at once.',
    action: 'Remove',
    onYes: async () => {
      await remove(projectPath(projectId, `/members/${id}`))
      onLink(null)
      await client.invalidateQueries({ queryKey: ['member', projectId] })
      tell(`${email} is removed.`)
    },
  })
  const reset = ({ email, user_id }: Member): Question => ({
    title: `Make a reset link for ${email}?`,
    text: 'By the link they choose a new password. Using it signs everybody else out of the account.',
    action: 'Make the link',
    isHarmless: true,
    onYes: async () => {
      const { reset_url } = await post<z.infer<typeof resetLinkSchema>>(`/api/users/${user_id}/reset`)
      onLink({
        title: `The reset link for ${email}`,
        value: reset_url,
        hint: 'Send it to the person whose address this is. It works once, for 24 hours, and is shown only now.',
      })
    },
  })
  return { remove: removeMember, reset }
}

interface RowProps {
  member: Member
  isAdmin: boolean
  onReset: () => void
  onRemove: () => void
}

function MemberRow({ member, isAdmin, onReset, onRemove }: RowProps) {
  const me = useMe()
  const { email, name, status, role, user_id, invitation_expires_at, created_at } = member
  return (
    <li className={classes.row}>
      <div className={classes.facts}>
        <Group gap="xs">
          <Text fw={500}>
            {name ?? email}
            {user_id !== null && user_id === me.id ? ' (you)' : ''}
          </Text>
          {status === 'invited' && <span className={classes.tag}>invited</span>}
          {!isAdmin && <span className={classes.tag}>{role}</span>}
        </Group>
        <Text size="sm" className="dim">
          {name !== null && `${email} · `}
          {status === 'invited' ? 'the link ends ' : 'since '}
          <When at={invitation_expires_at ?? created_at} />
        </Text>
      </div>
      {isAdmin && (
        <Group gap={4}>
          <RoleOf member={member} />
          {me.instance_admin && user_id !== null && (
            <Button size="compact-sm" variant="default" aria-label={`Reset link for ${email}`} onClick={onReset}>
              Reset link
            </Button>
          )}
          <Button size="compact-sm" variant="subtle" color="red" aria-label={`Remove ${email}`} onClick={onRemove}>
            Remove
          </Button>
        </Group>
      )}
    </li>
  )
}

function RoleOf({ member: { id, project_id, email, role } }: { member: Member }) {
  const { isBusy, write } = useWrite({ reads: [['member', project_id], meQuery.queryKey], isToldAside: true })
  const change = (next: string): void =>
    void write(() => patch(projectPath(project_id, `/members/${id}`), { role: next }), `${email} is ${next} now.`)
  return (
    <Select
      aria-label={`Role of ${email}`}
      size="xs"
      w={100}
      allowDeselect={false}
      disabled={isBusy}
      data={[...roles]}
      value={role}
      onChange={(next) => next !== null && next !== role && change(next)}
    />
  )
}

function InviteDialog(props: { projectId: string; onInvited: (link: FreshLink) => void; onClose: () => void }) {
  const client = useQueryClient()
  const { isBusy, problem, refused, write } = useWrite({ fields: ['email', 'role'] })
  const form = useForm({ initialValues: { email: '', role: 'member' } })
  const submit = form.onSubmit((values) =>
    write(async () => {
      const path = projectPath(props.projectId, '/members')
      const { email, invitation_url } = await post<z.infer<typeof invitedMemberSchema>>(path, values)
      void client.invalidateQueries({ queryKey: ['member', props.projectId] })
      props.onInvited({
        title: `The invitation for ${email}`,
        value: invitation_url,
        hint: 'Send this link to them. It works once, for seven days, and is shown only now.',
      })
    }),
  )
  return (
    <FormDialog
      title="Invite"
      action="Invite"
      write={{ isBusy, problem }}
      onSubmit={() => submit()}
      onClose={props.onClose}
    >
      <TextInput
        label="Email"
        type="email"
        required
        maxLength={254}
        data-autofocus
        {...form.getInputProps('email')}
        error={refused.email}
      />
      <RoleSelect {...form.getInputProps('role')} error={refused.role} />
    </FormDialog>
  )
}
