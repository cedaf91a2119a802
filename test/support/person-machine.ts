// A user's account on a machine that runs `latchkey login`, in this process and with a clock that the test moves. The test is the browser.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { exchangeIdentity } from '../../src/agent/access-token.ts'
import type { AgentContext } from '../../src/agent/commands/command.ts'
import { loginCommand } from '../../src/agent/commands/login.ts'
import { listLogins } from '../../src/agent/login-files.ts'
import { findIdToken } from '../../src/agent/login-token.ts'
import { type GivenOptions, readSource } from '../../src/agent/source-options.ts'
import { thisMachine } from '../../src/agent/this-machine.ts'
import { cookieOf } from './page-people.ts'
import { openPersonBrowser } from './person-browser.ts'
import { until } from './until.ts'

export type PersonMachine = ReturnType<typeof openMachine>

/** Everything of the account is in the folder. `true` stands for a browser. */
export function openMachine(folder: string, { url, policy }: { url: string; policy: string }) {
  const state = { later: 0 }
  const now = () => Date.now() + state.later
  const environment = { XDG_STATE_HOME: folder, XDG_RUNTIME_DIR: folder, BROWSER: 'true' }
  const dependencies = { environment, fetch: thisMachine.fetch, now }
  const [printed, logged]: [string[], string[]] = [[], []]
  const context: AgentContext = {
    platform: { ...thisMachine, environment, findIdToken: (login) => findIdToken(login, dependencies) },
    now,
    userAgent: 'test',
    print: (text) => printed.push(text),
    log: (line) => logged.push(line),
  }
  const stateFolder = join(folder, 'latchkey')
  const login = (given: GivenOptions = {}, at = url) => loginCommand.run(given, [at], context)
  const link = async () => {
    const find = () => /http:\S+\/start\/\S+/.exec(logged.join('\n'))?.[0]
    await until('the link', () => find() !== undefined)
    return find() ?? ''
  }
  const begin = async (given: GivenOptions = {}) => {
    const done = login(given)
    done.catch(() => {})
    return { done, link: await link() }
  }
  return {
    ...{ state, context, printed, logged, dependencies, stateFolder, login, link, begin },
    logins: () => listLogins(environment),
    files: () => readdirSync(stateFolder).map((name) => readFileSync(join(stateFolder, name), 'utf8')),
    exchange: () => exchangeIdentity(readSource({}, context), context),
    idToken: () => findIdToken({ url, policy }, dependencies),
    /** Signs in with the browser, as the person does. */
    signIn: async (given: GivenOptions = {}) => {
      const { done, link: start } = await begin(given)
      const opened = await openPersonBrowser().open(start)
      return { opened, code: await done }
    },
    /** Begins a sign-in, and stops before the browser returns to the machine. */
    stopBeforeReturn: async () => {
      const { done, link: start } = await begin()
      const browser = openPersonBrowser({ isLast: (each) => each.includes('/callback?') })
      const { url: returned, visited } = await browser.open(start)
      /** Returns to an address with what this browser has, and does not follow the response. */
      const send = (address: URL | string, headers: Record<string, string> = { cookie: cookieOf(browser) }) =>
        fetch(address, { redirect: 'manual', headers })
      return {
        done,
        link: start,
        browser,
        returned,
        visited,
        send,
        seeEnd: () => fetch(new URL('/signed-in', returned)),
      }
    },
  }
}
