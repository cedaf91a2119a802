// Types for the parts of oidc-provider that tests use; the package ships none.
declare module 'oidc-provider' {
  import type { IncomingMessage, ServerResponse } from 'node:http'

  type Interaction = {
    uid: string
    params: Record<string, string>
    prompt: { name: string; details: Record<string, string[] | undefined> }
    session?: { accountId: string }
    grantId?: string
  }
  type Grant = {
    addOIDCScope: (scope: string) => void
    save: () => Promise<string>
  }

  export class Provider {
    constructor(issuer: string, configuration: object)
    callback(): (request: IncomingMessage, response: ServerResponse) => Promise<void>
    interactionDetails(request: IncomingMessage, response: ServerResponse): Promise<Interaction>
    interactionFinished(request: IncomingMessage, response: ServerResponse, result: object): Promise<void>
    on(event: string, listen: (context: { oidc: { params?: Record<string, string> } }, error?: Error) => void): void
    readonly Grant: new (of: {
      accountId: string
      clientId: string
    }) => Grant
  }
}
