-- What the store of the service key (Vault) calls the version of the key that a run
-- used; '' where keys have no version. The key itself is nowhere in the database.
alter table {sync}.runs add column key_version text not null default '';
