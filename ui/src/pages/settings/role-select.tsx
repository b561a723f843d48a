import { Select, type SelectProps } from '@mantine/core'

const ROLES = [
  { value: 'viewer', label: 'viewer: reads' },
  { value: 'member', label: 'member: triggers, starts, decides' },
  { value: 'admin', label: 'admin: everything' },
]

export function RoleSelect(props: Pick<SelectProps, 'value' | 'onChange' | 'error'>) {
  return <Select label="Role" data={ROLES} allowDeselect={false} {...props} />
}
