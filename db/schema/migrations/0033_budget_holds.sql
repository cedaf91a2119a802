-- How a budget counts requests that run: by what they will probably use, by the most that they can use, or not at all.
alter table budgets add column hold text not null default 'expected' check (hold in ('expected', 'worst', 'off'));
