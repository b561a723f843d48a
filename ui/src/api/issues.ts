import { ApiError } from './client.ts'

/** The problems that the API found in a body, by the path of their field: `properties.name`. */
export function issuesOf(error: unknown): Map<string, string> {
  const details = error instanceof ApiError ? error.details : null
  const issues = (details as { issues?: unknown } | null)?.issues // as in the answer of a body that does not fit
  if (!Array.isArray(issues)) return new Map()
  return new Map(
    issues.flatMap((issue: { path?: unknown; message?: unknown }) =>
      typeof issue.path === 'string' && typeof issue.message === 'string' ? [[issue.path, issue.message]] : [],
    ),
  )
}
