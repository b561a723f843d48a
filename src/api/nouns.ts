// The nouns of the API by the names under which the OpenAPI document, and so every generated client, knows them. A body
// or an answer that is an object must be here; http/openapi.system.test.ts names missing ones.

import { flowInput, flowPatch, flowRoot, flowSchema } from '../flows/definition/flows.ts'
import { flowMetricsSchema } from '../flows/history/metrics.ts'
import { flowTopologySchema } from '../flows/history/topology.ts'
import { flowTaskSchema, traceSchema } from '../flows/history/trace.ts'
import type { Patterns } from '../flows/machine/pattern.ts'
import * as access from '../kernel/access.ts'
import * as agent from '../kernel/agent.ts'
import { agentMessageSchema } from '../kernel/agent-message.ts'
import { alertSchema } from '../kernel/alert.ts'
import { chatRequest } from '../kernel/chat.ts'
import * as evals from '../kernel/eval.ts'
import { agentLeaf, functionLeaf, innerField } from '../kernel/flow.ts'
import { flowRunSchema, progressSchema } from '../kernel/flow-run.ts'
import { componentSchema, layoutRequest, layoutSchema } from '../kernel/genui.ts'
import { homeProjectSchema, homeSchema } from '../kernel/home.ts'
import { deliveredSchema, hookInput, hookSchema, newHookSchema } from '../kernel/hook.ts'
import { listedTool } from '../kernel/listed-tool.ts'
import { mcpApproval, mcpServerInput, mcpServerSchema, mcpToolEntry } from '../kernel/mcp-server.ts'
import * as object from '../kernel/object.ts'
import { agentHealthSchema, budgetInput, orgAgentSchema, orgSchema } from '../kernel/org.ts'
import * as project from '../kernel/project.ts'
import * as prompt from '../kernel/prompt.ts'
import * as provider from '../kernel/provider.ts'
import * as run from '../kernel/run.ts'
import { schedulePreviewSchema, scheduleSchema } from '../kernel/schedule.ts'
import { searchAnswerSchema, searchHitSchema } from '../kernel/search.ts'
import * as supervisor from '../kernel/supervisor.ts'
import * as task from '../kernel/task.ts'
import * as usage from '../kernel/usage.ts'
import type { Nouns } from './http/components.ts'
import { errorSchema } from './http/errors.ts'
import { adjustInput, resumeFlowInput, startInput, workersInput } from './routes/flow-runs.ts'
import { recommendationSchema, templateSchema, workloadInput } from './routes/flow-templates.ts'
import { topologyInput } from './routes/flow-topology.ts'
import { verdictSchema } from './routes/flows.ts'
import { healthSchema, readinessSchema } from './routes/system.ts'
import { listedSystemSchema, systemInput, systemListSchema, systemSchema } from './routes/system-variants.ts'

const named = {
  Error: errorSchema,
  Health: healthSchema,
  Readiness: readinessSchema,

  Project: project.projectSchema,
  ProjectInput: project.projectInput,
  ProjectPatch: project.projectPatch,
  Settings: project.settingsSchema,
  SettingsPatch: project.settingsPatch,
  Provider: provider.providerSchema,
  ProviderInput: provider.providerInput,
  ProviderPatch: provider.providerPatch,
  ProviderTestInput: provider.providerTestInput,
  ProviderTest: provider.providerTestSchema,

  Key: access.keySchema,
  NewKey: access.newKeySchema,
  KeyInput: access.keyInput,
  Member: access.memberSchema,
  InvitedMember: access.invitedMemberSchema,
  MemberInput: access.memberInput,
  MemberPatch: access.memberPatch,
  Invitation: access.invitationSchema,
  InvitationAcceptance: access.invitationAcceptance,
  ResetLink: access.resetLinkSchema,
  Reset: access.resetSchema,
  NewPassword: access.newPassword,
  SignIn: access.signInInput,
  PasswordChange: access.passwordChange,
  Me: access.meSchema,
  Session: access.sessionSchema,
  SessionList: access.sessionListSchema,
  AuditEntry: access.auditEntrySchema,
  AuditVerdict: access.auditVerdictSchema,

  Agent: agent.agentSchema,
  AgentInput: agent.agentInput,
  AgentPatch: agent.agentPatch,
  AgentStep: agent.agentStep,
  ModelChoice: agent.modelChoice,
  Capabilities: agent.capabilitiesField,
  CapabilitiesInput: agent.sentCapabilities,
  ReactionConfig: agent.reactionConfig,
  Tool: listedTool,
  McpServer: mcpServerSchema,
  McpServerInput: mcpServerInput,
  McpApproval: mcpApproval,
  McpTool: mcpToolEntry,
  Hook: hookSchema,
  NewHook: newHookSchema,
  HookInput: hookInput,
  Delivered: deliveredSchema,
  Schedule: scheduleSchema,
  SchedulePreview: schedulePreviewSchema,

  Run: run.runSchema,
  Usage: run.usageSchema,
  UsageReport: usage.usageReportSchema,
  UsageAmounts: usage.amountsSchema,
  UsageOfDay: usage.usageOfDaySchema,
  UsageOfAgent: usage.usageOfAgentSchema,
  UsageItem: usage.usageItemSchema,
  TriggerInput: run.triggerInput,
  ResumeInput: run.resumeInput,
  ForkInput: run.forkInput,
  Step: run.stepSchema,
  RunWait: run.runWaitSchema,
  RunEffect: run.runEffectSchema,
  RunEffects: run.runEffectsSchema,
  ForkedRun: run.forkedRunSchema,
  StepUsage: run.stepUsage,

  Object: object.objectSchema,
  ObjectInput: object.objectInput,
  ObjectByKey: object.objectByKey,
  ObjectPatch: object.objectPatch,
  ObjectVersion: object.objectVersionSchema,
  Relationship: object.relationshipSchema,
  RelationshipInput: object.relationshipInput,
  ProcessingEntry: object.processingEntrySchema,

  Task: task.taskSchema,
  TaskInput: task.taskInput,
  TaskPatch: task.taskPatch,
  Creator: task.creatorSchema,
  SuggestedChange: task.changeSchema,
  SuggestedCall: task.suggestedCallSchema,
  Rejection: task.rejectInput,
  TaskIds: task.taskIds,
  ApprovalResults: task.approvalResultSchema,

  Home: homeSchema,
  HomeProject: homeProjectSchema,

  SearchAnswer: searchAnswerSchema,
  SearchHit: searchHitSchema,

  Org: orgSchema,
  OrgAgent: orgAgentSchema,
  AgentHealth: agentHealthSchema,
  BudgetInput: budgetInput,
  Message: agentMessageSchema,

  Flow: flowSchema,
  FlowInput: flowInput,
  FlowPatch: flowPatch,
  FlowRoot: flowRoot,
  FlowNode: innerField,
  AgentLeaf: agentLeaf,
  FunctionLeaf: functionLeaf,
  FlowVerdict: verdictSchema,
  FlowTemplate: templateSchema,
  Workload: workloadInput,
  Recommendation: recommendationSchema,
  FlowRun: flowRunSchema,
  FlowRunInput: startInput,
  FlowRunPatch: adjustInput,
  FlowRunResume: resumeFlowInput,
  FlowProgress: progressSchema,
  WorkersInput: workersInput,
  FlowTask: flowTaskSchema,
  Trace: traceSchema,
  FlowMetrics: flowMetricsSchema,
  FlowTopology: flowTopologySchema,
  TopologyInput: topologyInput,
  Alert: alertSchema,

  Prompt: prompt.promptSchema,
  ListedPrompt: prompt.listedPromptSchema,
  PromptInput: prompt.promptInput,
  PromptMessage: prompt.promptMessage,
  PromptVersion: prompt.promptVersionSchema,
  PromptDiff: prompt.promptDiffSchema,
  PromptRequest: prompt.promptRequest,
  PromptAnswer: prompt.promptAnswer,
  RollbackInput: prompt.rollbackInput,

  System: systemSchema,
  SystemInput: systemInput,
  SystemList: systemListSchema,
  ListedSystem: listedSystemSchema,
  Specialist: supervisor.specialistConfig,
  SupervisorState: supervisor.supervisorState,
  ToDo: supervisor.toDo,
  AgentSummary: supervisor.agentSummary,
  AgentRunRequest: supervisor.agentRunRequest,
  AgentRunAnswer: supervisor.agentRunAnswer,
  ChatRequest: chatRequest,
  Layout: layoutSchema,
  Component: componentSchema,
  LayoutRequest: layoutRequest,

  Eval: evals.evalSchema,
  ListedEval: evals.listedEvalSchema,
  EvalInput: evals.evalInput,
  EvalCase: evals.evalCase,
  Expectation: evals.expectation,
  EvalVariant: evals.variantResultSchema,
  CaseResult: evals.caseResultSchema,
  EvalDeltas: evals.deltasSchema,
  EvalIntervals: evals.intervalsSchema,
  EvalComparison: evals.comparisonSchema,
  EvalCorrectness: evals.correctnessSchema,
} satisfies Nouns['named']

/** A node of a flow is a leaf or one of the patterns that this server has: `map_reduce` is a MapReduceNode. */
export function nounsOf({ all }: Patterns): Nouns {
  const patterns = Object.fromEntries(all.map(({ type, schema }) => [nodeName(type), schema]))
  return { named, unions: { FlowNode: { AgentLeaf: agentLeaf, FunctionLeaf: functionLeaf, ...patterns } } }
}

const nodeName = (type: string): string =>
  `${type.replaceAll(/(?:^|_)([a-z])/g, (_, first: string) => first.toUpperCase())}Node`
