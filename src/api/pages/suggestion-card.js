import { get, post } from './api.js'
import { askSentence } from './dialogs.js'
import { diffView, visible } from './diff.js'
import { announce, button, el, focusOn, showInstant } from './dom.js'
import { projectAddress } from './projects.js'
import { statusBadge } from './status.js'

const OPS = { create: 'Create', update: 'Update', delete: 'Delete', relate: 'Relate' }
const REASON_LENGTH = 20_000

/** One suggestion: who wants what changed and why, and the decision. `onChange` is called when it can be chosen or not. */
export function suggestionCard({ task, project, path, names, isMember, onChange }) {
  const title = visible(task.title)
  const box = el('input', { type: 'checkbox', 'aria-label': `Select ${title}`, on: { change: onChange } })
  const element = el('li', { class: 'review', 'aria-label': title })
  draw(task, null)
  return {
    id: task.id,
    element,
    isSelectable: () => box.isConnected,
    isSelected: () => box.isConnected && box.checked,
    select: (isSelected) => {
      box.checked = isSelected && box.isConnected
    },
    /** The verdict of an approval of several. */
    decided: ({ ok, error }) => showAsItIs(ok ? null : error.message),
  }

  function draw(now, problem) {
    const isOpen = now.status === 'pending'
    const isStale = isOpen && now.metadata.stale === true
    const canApprove = isMember && isOpen && !isStale
    element.replaceChildren(
      el(
        'div',
        { class: 'title' },
        canApprove ? box : null,
        el('span', { class: 'name' }, title),
        isOpen ? null : statusBadge(now.status, now.status === 'completed' ? 'approved' : now.status),
        isStale ? statusBadge('stale') : null,
      ),
      el(
        'p',
        { class: 'dim' },
        'suggested by ',
        names.author(now.created_by, now.run_id),
        ' · ',
        showInstant(now.created_at),
      ),
      ...(isOpen
        ? [el('p', { class: 'prose' }, visible(now.reasoning ?? '')), ...(now.changes ?? []).map(changeView)]
        : []),
      ...(problem || isStale ? [problemNote(now, problem)] : []),
      ...(isMember && isOpen ? [buttons(canApprove)] : []),
    )
    onChange()
  }

  function changeView({ op, object_type, object_id, key, base_version, before, after }) {
    const type = visible(object_type)
    return el(
      'div',
      { class: 'change' },
      el(
        'p',
        {},
        el('span', { class: 'badge' }, OPS[op] ?? op),
        ' ',
        object_id ? el('a', { href: projectAddress(project.id, 'objects', object_id) }, type) : type,
        key ? ` ${visible(key)}` : null,
        base_version === null ? null : el('span', { class: 'dim' }, ` as of version ${base_version}`),
      ),
      diffView(before, after),
    )
  }

  function problemNote({ metadata }, problem) {
    const text = problem ?? `${metadata.stale_reason ?? 'The object has changed since.'} It can only be rejected.`
    return el('p', { class: `note ${problem ? 'bad' : 'wait'}`, role: problem ? 'alert' : null }, text)
  }

  function buttons(canApprove) {
    const approveIt = button('Approve', approve, { class: 'primary', 'aria-label': `Approve ${title}` })
    const rejectIt = button('Reject…', reject, { 'aria-label': `Reject ${title}` })
    return el('div', { class: 'buttons' }, canApprove ? approveIt : null, rejectIt)
  }

  async function approve() {
    await decide('approve', {})
  }

  async function reject() {
    const title = 'Reject this suggestion?'
    const reason = await askSentence({ title, label: 'Reason (optional)', action: 'Reject', maxlength: REASON_LENGTH })
    if (reason !== null) await decide('reject', reason === '' ? {} : { reason })
  }

  async function decide(verb, body) {
    for (const each of element.querySelectorAll('button')) each.disabled = true
    try {
      const now = await post(`${path}/${task.id}/${verb}`, body)
      draw(now, null)
      announce(verb === 'approve' ? 'It is approved: the change is made.' : 'It is rejected.')
    } catch (error) {
      await showAsItIs(error.message)
    }
    focusOn(element, { preventScroll: true })
  }

  /** Somebody else may have decided, or the object may have moved on. */
  async function showAsItIs(problem) {
    draw(await get(`${path}/${task.id}`).catch(() => task), problem)
  }
}
