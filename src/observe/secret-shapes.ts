/** Text that looks like a secret. It is better to mask one word too many than one key too few. Every repetition is
 * bounded or begins at a fixed text, because these patterns run over strings that strangers chose. */

export const mask = '[redacted]'

/** Names after which a value follows in prose, query strings and JSON inside of strings. */
const label =
  '(?:(?:api|access|secret|private)[_-]?key|(?:[a-z]{1,20}[_-])?(?:token|secret)|password|passwd|pwd|authorization)'

const shapes: readonly (readonly [pattern: RegExp, replacement: string])[] = [
  // Muster's own: API keys, webhook secrets, and the 43 characters of randomToken() (sign-in, links, secret files).
  [/(?<![A-Za-z0-9])mk_[A-Za-z0-9_-]{12,}/g, mask],
  [/(?<![A-Za-z0-9])whsec_[A-Za-z0-9+/=%_-]{8,}/g, mask],
  [/(?<![A-Za-z0-9_-])(?=[a-z0-9_-]{0,42}[A-Z])(?=[A-Z0-9_-]{0,42}[a-z])[A-Za-z0-9_-]{43}(?![A-Za-z0-9_-])/g, mask],

  // Providers and others whose keys people paste: OpenAI, Anthropic, Stripe, Google, GitHub, GitLab, Slack, AWS, …
  [/(?<![A-Za-z0-9])[sr]k[-_][A-Za-z0-9_-]{12,}/g, mask],
  [/(?<![A-Za-z0-9])(?:AIza|ya29\.|GOCSPX-)[A-Za-z0-9_-]{16,}/g, mask],
  [/(?<![A-Za-z0-9])(?:gh[oprsu]_|github_pat_|glpat-|xox[a-z]-|lsv2_[a-z]{2}_)[A-Za-z0-9_-]{12,}/g, mask],
  [/(?<![A-Za-z0-9])(?:gsk_|hf_|xai-|npm_|pplx-|r8_)[A-Za-z0-9_-]{12,}/g, mask],
  [/(?<![A-Za-z0-9])(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Za-z0-9])/g, mask],
  [/(?<![A-Za-z0-9])eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?/g, mask],
  [/-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----.*?(?:-----END [A-Z ]{0,40}PRIVATE KEY-----|$)/gs, mask],

  // Any value after these words is a secret.
  [/\b(Bearer\s{1,8})[A-Za-z0-9._~+/=-]{3,}/gi, `$1${mask}`],
  [/\b(Basic\s{1,8})(?=[a-z+/_-]{0,200}[A-Z0-9])[A-Za-z0-9+/_-]{6,}={0,2}/g, `$1${mask}`],
  [/\b((?:set-)?cookie:\s{0,8})[^\r\n]+/gi, `$1${mask}`],
  [/(:\/\/[^\s:/?#"'@]{0,256}:)[^\s"'/?#]{1,1024}(?=@)/g, `$1${mask}`],
  [new RegExp(`([?&;]${label}=|[?&](?:key|code|sig|signature|auth)=)[^&\\s"'<>#\\\\]+`, 'gi'), `$1${mask}`],
  [
    new RegExp(
      `(?<![A-Za-z0-9])(${label}\\\\{0,8}["']?\\s{0,8}=\\s{0,8}\\\\{0,8}["']?)(?!\\[)[^\\s"'\\\\,;&)}\\]]{3,}`,
      'gi',
    ),
    `$1${mask}`,
  ],
  [
    new RegExp(`(?<![A-Za-z0-9])(${label}\\\\{0,8}["']\\s{0,8}:\\s{0,8}\\\\{0,8}["'])(?!\\[)[^"'\\\\]+`, 'gi'),
    `$1${mask}`,
  ],
]

/** Every text that a shape matches also matches this, so most strings of a log line need no further search. */
const suspicious = /[=@"']|[A-Za-z0-9_-]{14}|whsec_|ya29\.|eyJ|-----BEGIN|bearer|basic|cookie/i
const uuid = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

export function maskShapes(text: string): string {
  if (!suspicious.test(text) || uuid.test(text)) return text
  return shapes.reduce((clean, [pattern, replacement]) => clean.replace(pattern, replacement), text)
}
