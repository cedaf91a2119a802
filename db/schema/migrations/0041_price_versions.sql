-- The most tokens that a response of a model has, prices that take effect later (JSON), and the price that a request was charged with.
alter table prices add column max_output_tokens integer;
alter table prices add column later text;
alter table usage add column price text;
