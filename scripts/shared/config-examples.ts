// Example documents of `latchkey config example`, one for each identity provider. Each passes the linter and its own tests.
import aws from '../examples/aws.yaml' with { type: 'text' }
import azure from '../examples/azure.yaml' with { type: 'text' }
import bitbucket from '../examples/bitbucket.yaml' with { type: 'text' }
import buildkite from '../examples/buildkite.yaml' with { type: 'text' }
import circleci from '../examples/circleci.yaml' with { type: 'text' }
import github from '../examples/github.yaml' with { type: 'text' }
import gitlab from '../examples/gitlab.yaml' with { type: 'text' }
import google from '../examples/google.yaml' with { type: 'text' }
import jenkins from '../examples/jenkins.yaml' with { type: 'text' }
import kubernetes from '../examples/kubernetes.yaml' with { type: 'text' }
import own from '../examples/private.yaml' with { type: 'text' }
import spiffe from '../examples/spiffe.yaml' with { type: 'text' }
import terraform from '../examples/terraform.yaml' with { type: 'text' }

/** YAML by name, in the order in which they are listed. */
export const examples: ReadonlyMap<string, string> = new Map([
  ['github', github],
  ['gitlab', gitlab],
  ['kubernetes', kubernetes],
  ['aws', aws],
  ['azure', azure],
  ['google', google],
  ['bitbucket', bitbucket],
  ['buildkite', buildkite],
  ['circleci', circleci],
  ['jenkins', jenkins],
  ['terraform', terraform],
  ['spiffe', spiffe],
  ['private', own],
])

/** What an example is about: its first line. */
export function titleOf(text: string): string {
  return text.slice(0, text.indexOf('\n')).replace(/^# /, '')
}
