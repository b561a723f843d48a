import { z } from 'zod'

/** Roles of a project, weakest first. */
export const roles = ['viewer', 'member', 'admin'] as const
export const roleField = z.enum(roles)
export type Role = z.infer<typeof roleField>

export const isAtLeast = (role: Role, needed: Role): boolean => roles.indexOf(role) >= roles.indexOf(needed)
