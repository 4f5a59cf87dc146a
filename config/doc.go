// Package config turns a file, the environment and the flags into one checked
// [Config].
//
// What lives here: the names of the settings, their defaults, what each may be,
// and where a value came from. What may not: secrets other than the database's
// address (the service key and Vault's secrets are read by the credentials room, and
// a key is refused here by name), timetable parsing, logging, anything that connects.
//
// Invariants:
//
//  1. One table, in settings.go, says everything about a setting; file,
//     environment, flags, the JSON Schema and the listing all read it.
//  2. The stronger source wins: default < file < environment < flag. A mistake in a
//     weaker source is reported all the same.
//  3. Every mistake is reported at once, with its place and a hint.
//  4. No message, no listing and no schema holds a service key, a token or a
//     password, not even one that was written in the wrong place.
package config
