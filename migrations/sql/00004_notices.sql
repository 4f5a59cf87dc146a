-- What the remote wanted noticed, such as a limit that it cut.
alter table {sync}.runs add column notices bigint not null default 0;
