// The environment of a command that `exec` runs: what its clients read, and what would lead them elsewhere.
import { expect, test } from 'bun:test'
import { clientEnvironment, withoutLocalProxy } from '../../src/agent/client-environment.ts'

test('the clients of OpenAI, OpenRouter and Anthropic get an address each, and no credential of another service', () => {
  const inherited = {
    PATH: '/bin',
    OPENAI_API_KEY: 'sk-other',
    ANTHROPIC_API_KEY: 'sk-other',
    OPENAI_BASE_URL: 'https://other',
  }
  const environment = clientEnvironment(inherited, { url: 'http://127.0.0.1:1/v1', key: 'secret' })
  expect(environment).toEqual({
    PATH: '/bin',
    OPENAI_BASE_URL: 'http://127.0.0.1:1/v1',
    OPENAI_API_KEY: 'secret',
    ANTHROPIC_BASE_URL: 'http://127.0.0.1:1',
    ANTHROPIC_AUTH_TOKEN: 'secret',
    ANTHROPIC_API_KEY: undefined,
    OPENROUTER_BASE_URL: 'http://127.0.0.1:1/v1',
    OPENROUTER_API_KEY: 'secret',
  })
})

test('a proxy is not used for the agent, and stays for everything else', () => {
  for (const name of ['http_proxy', 'HTTP_PROXY', 'ALL_PROXY']) {
    const environment = withoutLocalProxy({ [name]: 'http://proxy:3128', NO_PROXY: 'corp.example.com' })
    expect(environment).toEqual({
      [name]: 'http://proxy:3128',
      NO_PROXY: 'corp.example.com,127.0.0.1,localhost,::1',
      no_proxy: 'corp.example.com,127.0.0.1,localhost,::1',
    })
  }
  expect(withoutLocalProxy({ no_proxy: 'a', http_proxy: '' })).toEqual({ no_proxy: 'a', http_proxy: '' })
})
