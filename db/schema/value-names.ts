// The values of columns that commands name too. It loads no library.

export const keyKinds = ['inference', 'management', 'management_read_only'] as const
export const limitResets = ['daily', 'weekly', 'monthly'] as const
export const keySources = ['discovery', 'jwks_url', 'jwks'] as const
