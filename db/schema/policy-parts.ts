// What a policy has as JSON.

/** A finding of the linter that an administrator accepts, and why. */
export type LintException = { rule: string; because: string }

/** A case that a policy must decide as `expect` says: `allow`, or a reason of the audit. */
export type PolicyTest = { name: string; claims: Record<string, unknown>; expect: string }
