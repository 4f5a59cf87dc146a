-- Which full pass the last merge brought in, by when it began, and whether its
-- deletions were left out. Who dies between a merge and saying so finds out by it
-- whether it was done, and that it was this one.
alter table {sync}.state
    add column merged_pass timestamptz,
    add column merged_spared boolean not null default false;
