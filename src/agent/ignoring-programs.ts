// Programs that ignore the variables of `exec` and call the host of their vendor, and what to add so that they do not.
import { homedir } from 'node:os'
import { basename, join } from 'node:path'
import type { Environment } from './identity.ts'

type Dependencies = { environment: Environment; readFile: (path: string) => Promise<string> }
type Rule = {
  /** What to show, each on its line. */
  lines: readonly string[]
  /** Whether the arguments or a file of the program lead it elsewhere. */
  isConfigured: (args: readonly string[], machine: Dependencies) => Promise<boolean>
}

/** Codex 0.169 takes its host from its configuration alone. The agent has another port each time, so the shell fills it in. */
const codexProvider = [
  'model_provider=latchkey',
  'model_providers.latchkey.name=Latchkey',
  'model_providers.latchkey.base_url="$OPENAI_BASE_URL"',
  'model_providers.latchkey.env_key=OPENAI_API_KEY',
  'model_providers.latchkey.wire_api=responses',
]
const namesProvider = /(?:^|[^\w])(?:model_provider|openai_base_url)\s*=/m

const rules: Readonly<Record<string, Rule>> = {
  codex: {
    lines: [
      'codex ignores OPENAI_BASE_URL: it calls api.openai.com with the key of this job. Start it with a provider:',
      `  latchkey exec -- sh -c 'codex ${codexProvider.map((setting) => `-c ${setting}`).join(' ')} "$@"' codex ARGUMENTS`,
      'or add the lines of "latchkey help workloads", Codex CLI, to ~/.codex/config.toml',
    ],
    isConfigured: async (args, { environment, readFile }) => {
      if (args.some((text) => namesProvider.test(text))) return true
      const folder = environment.CODEX_HOME ?? join(environment.HOME ?? homedir(), '.codex')
      return namesProvider.test(await readFile(join(folder, 'config.toml')).catch(() => ''))
    },
  },
  gemini: {
    lines: [
      'gemini ignores these variables: it speaks only the API of Google, which Latchkey does not serve. Use another client',
    ],
    isConfigured: async () => false,
  },
}

/** They run a program that their arguments name. */
const launchers = ['npx', 'bunx', 'pnpx', 'node', 'env', 'nice', 'timeout']
const launcherArgumentsMax = 4

/** The lines that warn of a command that will not use Latchkey; none for any other command. */
export async function warningsFor(
  [program = '', ...args]: readonly string[],
  machine: Dependencies,
): Promise<string[]> {
  const named = launchers.includes(nameOf(program)) ? args.slice(0, launcherArgumentsMax) : [program]
  const found = named.map(nameOf).find((name) => Object.hasOwn(rules, name))
  const rule = found === undefined ? undefined : rules[found]
  return rule === undefined || (await rule.isConfigured(args, machine)) ? [] : [...rule.lines]
}

/** `codex` for `/usr/bin/codex`, `codex.cmd` and `@openai/codex@latest`. */
function nameOf(word: string): string {
  return (basename(word).split('@')[0] ?? '').replace(/\.(?:exe|cmd|m?js)$/, '')
}
