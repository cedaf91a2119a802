// The page of the linter has every rule with the words of the program, and no other.
import { expect, test } from 'bun:test'
import { lintRules, ruleNames } from '../../src/federation/lint/rules.ts'
import { topics } from '../../src/manual/topics.ts'

test('the manual lists every rule of the linter as the program has it, and no other', () => {
  const [, ...sections] = (topics.get('linter') ?? '').split('\n### ')
  const listed = sections.map((section) => section.replaceAll(/\s+/g, ' ').trim())
  const expected = ruleNames.map((name) => {
    const { level, means, attack, fix } = lintRules[name]
    return `\`${name}\` ${level.charAt(0).toUpperCase()}${level.slice(1)}. ${means} Attack: ${attack} Fix: ${fix}`
  })
  expect(listed).toEqual(expected)
})
