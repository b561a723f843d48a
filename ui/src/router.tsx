import { createRootRoute, createRoute, createRouter, lazyRouteComponent, redirect } from '@tanstack/react-router'
import { Shell } from './app/shell.tsx'
import { Unknown } from './app/unknown.tsx'
import { beforeRetry, loadCode } from './parts/load-code.ts'
import { Failure, Loading } from './parts/states.tsx'

const lazyPage: typeof lazyRouteComponent = (load, name) => lazyRouteComponent(() => loadCode(load), name)

const root = createRootRoute({ component: Shell, notFoundComponent: Unknown })
const project = createRoute({ getParentRoute: () => root, path: '/projects/$projectId' })
const ofProject = () => project

/** Keeps the named parameters of an address that have a text, and drops all others. */
const keep =
  <Name extends string>(...names: Name[]) =>
  (search: Record<string, unknown>): Partial<Record<Name, string>> => {
    const given = names.flatMap((name) => (search[name] ? [[name, String(search[name])]] : []))
    return Object.fromEntries(given) as Partial<Record<Name, string>> // only the names above
  }

const home = createRoute({
  getParentRoute: () => root,
  path: '/',
  validateSearch: keep('new'),
  component: lazyPage(() => import('./pages/home/home-page.tsx'), 'HomePage'),
})

/** Pages for people who may not be signed in. */
const doors = [
  createRoute({
    getParentRoute: () => root,
    path: '/invitations/$token',
    staticData: { isDoor: true },
    component: lazyPage(() => import('./app/invitation-page.tsx'), 'InvitationPage'),
  }),
  createRoute({
    getParentRoute: () => root,
    path: '/resets/$token',
    staticData: { isDoor: true },
    component: lazyPage(() => import('./app/reset-page.tsx'), 'ResetPage'),
  }),
] as const

const account = createRoute({
  getParentRoute: () => root,
  path: '/account',
  component: lazyPage(() => import('./pages/settings/account-page.tsx'), 'AccountPage'),
})

const operate = [
  createRoute({
    getParentRoute: ofProject,
    path: '/flows',
    validateSearch: keep('status', 'flow', 'again'),
    component: lazyPage(() => import('./pages/flows/flows-page.tsx'), 'FlowsPage'),
  }),
  createRoute({
    getParentRoute: ofProject,
    path: '/flows/new',
    validateSearch: keep('template', 'from'),
    component: lazyPage(() => import('./pages/flow-editor/new-flow-page.tsx'), 'NewFlowPage'),
  }),
  createRoute({
    getParentRoute: ofProject,
    path: '/flows/definitions/$flowId',
    component: lazyPage(() => import('./pages/flow-editor/flow-definition-page.tsx'), 'FlowDefinitionPage'),
  }),
  createRoute({
    getParentRoute: ofProject,
    path: '/flows/$flowRunId',
    validateSearch: keep('view', 'status', 'task'),
    component: lazyPage(() => import('./pages/flow/flow-page.tsx'), 'FlowPage'),
  }),
  createRoute({
    getParentRoute: ofProject,
    path: '/runs',
    validateSearch: keep('q', 'period', 'status', 'agent', 'subruns'),
    component: lazyPage(() => import('./pages/runs/runs-page.tsx'), 'RunsPage'),
  }),
  createRoute({
    getParentRoute: ofProject,
    path: '/runs/$runId',
    component: lazyPage(() => import('./pages/run/run-page.tsx'), 'RunPage'),
  }),
  createRoute({
    getParentRoute: ofProject,
    path: '/runs/$runId/compare/$otherId',
    component: lazyPage(() => import('./pages/compare/compare-page.tsx'), 'ComparePage'),
  }),
  createRoute({
    getParentRoute: ofProject,
    path: '/inbox',
    validateSearch: keep('item', 'kind'),
    component: lazyPage(() => import('./pages/inbox/inbox-page.tsx'), 'InboxPage'),
  }),
  createRoute({
    getParentRoute: ofProject,
    path: '/organisation',
    validateSearch: keep('agent', 'tab', 'task'),
    component: lazyPage(() => import('./pages/organisation/organisation-page.tsx'), 'OrganisationPage'),
  }),
] as const

const build = [
  createRoute({
    getParentRoute: ofProject,
    path: '/agents',
    component: lazyPage(() => import('./pages/agents/agents-page.tsx'), 'AgentsPage'),
  }),
  createRoute({
    getParentRoute: ofProject,
    path: '/agents/new',
    validateSearch: keep('from'),
    component: lazyPage(() => import('./pages/agents/new-agent-page.tsx'), 'NewAgentPage'),
  }),
  createRoute({
    getParentRoute: ofProject,
    path: '/agents/$agentId',
    validateSearch: keep('tab'),
    component: lazyPage(() => import('./pages/agents/agent-page.tsx'), 'AgentPage'),
  }),
  createRoute({
    getParentRoute: ofProject,
    path: '/agents/$agentId/edit',
    validateSearch: keep('field'),
    component: lazyPage(() => import('./pages/agents/edit-agent-page.tsx'), 'EditAgentPage'),
  }),
  createRoute({
    getParentRoute: ofProject,
    path: '/prompts',
    validateSearch: keep('prompt', 'variant', 'with'),
    component: lazyPage(() => import('./pages/prompts/prompts-page.tsx'), 'PromptsPage'),
  }),
  createRoute({
    getParentRoute: ofProject,
    path: '/playground',
    validateSearch: keep('chat', 'variant'),
    component: lazyPage(() => import('./pages/playground/playground-page.tsx'), 'PlaygroundPage'),
  }),
] as const

const improve = [
  createRoute({
    getParentRoute: ofProject,
    path: '/evals',
    component: lazyPage(() => import('./pages/evals/evals-page.tsx'), 'EvalsPage'),
  }),
  createRoute({
    getParentRoute: ofProject,
    path: '/evals/$evalId',
    component: lazyPage(() => import('./pages/evals/eval-page.tsx'), 'EvalPage'),
  }),
  createRoute({
    getParentRoute: ofProject,
    path: '/objects',
    validateSearch: keep('type', 'q'),
    component: lazyPage(() => import('./pages/objects/objects-page.tsx'), 'ObjectsPage'),
  }),
  createRoute({
    getParentRoute: ofProject,
    path: '/objects/$objectId',
    component: lazyPage(() => import('./pages/objects/object-page.tsx'), 'ObjectPage'),
  }),
] as const

const settings = [
  createRoute({
    getParentRoute: ofProject,
    path: '/settings',
    beforeLoad: ({ params }) => {
      throw redirect({ to: '/projects/$projectId/settings/$section', params: { ...params, section: 'providers' } })
    },
  }),
  createRoute({
    getParentRoute: ofProject,
    path: '/settings/$section',
    validateSearch: keep('action', 'who'),
    component: lazyPage(() => import('./pages/settings/settings-page.tsx'), 'SettingsPage'),
  }),
] as const

export const router = createRouter({
  routeTree: root.addChildren([
    home,
    ...doors,
    account,
    project.addChildren([...operate, ...build, ...improve, ...settings]),
  ]),
  defaultPreload: 'intent',
  defaultPendingComponent: Loading,
  defaultErrorComponent: ({ error, reset }) => (
    <Failure what="This page cannot be shown." error={error} onRetry={() => void retry(error).then(reset)} />
  ),
  scrollRestoration: true,
})

declare module '@tanstack/react-router' {
  interface Register {
    router: typeof router
  }
  interface StaticDataRouteOption {
    /** True: the page is shown to people who are not signed in, without the navigation. */
    isDoor?: boolean
  }
}

async function retry(error: unknown): Promise<void> {
  if ((await beforeRetry(error)) === 'may try') await router.invalidate({ sync: true })
}
