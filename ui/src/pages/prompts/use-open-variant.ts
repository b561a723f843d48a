import { useNavigate } from '@tanstack/react-router'

/** Shows a variant of a prompt, and another one beside it if one is given. */
export function useOpenVariant(projectId: string) {
  const navigate = useNavigate()
  return (prompt: string, variant?: string | null, other?: string | null) =>
    navigate({
      to: '/projects/$projectId/prompts',
      params: { projectId },
      search: { prompt, ...(variant && { variant }), ...(other && { with: other }) },
      replace: true,
    })
}
