// How presets are drawn for people.
import { expect, test } from 'bun:test'
import { drawDiff } from '../../../scripts/shared/preset-views.ts'

test('two versions that differ in too many lines to compare in the time are distinguished in a sentence', () => {
  const version = (number: number) => ({
    preset_version: `long@${number}`,
    system_prompt: Array.from({ length: 5_000 }, (_, line) => `${number} ${line}`).join('\n'),
    config: {},
  })
  const [from, to] = [version(1), version(2)]
  const changes = [{ field: 'system_prompt', from: from.system_prompt, to: to.system_prompt }]
  expect(drawDiff({ from, to, changes }, undefined, 20)).toBe(
    'long@1 and long@2 differ in too many lines to show. They differ in: system_prompt. See both with --json',
  )
})
