// Package vault reads secrets from HashiCorp Vault: the service key from a KV
// engine, and the database's login from KV or from the database engine.
//
// What lives here: the Vault client, the ways to log in, the life of Vault's own
// token, and the reading of secrets. What may not: what the secrets are for. The
// package gives credentials.Secret and *credentials.Error and knows nothing of
// the exchange with Xiaoqu.
//
// Invariants:
//
//  1. Only what Options say counts: the client library would read VAULT_* by
//     itself, and a variable that nobody meant could redirect it.
//  2. Every secret, Vault's own tokens too, is told to Options.OnSecret before it
//     is used, and is in no error text.
//  3. Before the first answer Vault is waited for, up to Options.Wait. After it a
//     Vault that is down or sealed is an error at once, and never takes anything
//     away: whoever asked goes on with what it has.
//  4. A login that can be made again is, before its token ends. What a token
//     brought ends with it, so leased logins of the database are fetched anew.
//  5. A wrapped secret id is opened once, and kept.
package vault
