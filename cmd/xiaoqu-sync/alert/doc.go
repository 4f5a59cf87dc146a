// Package alert tells people that the mirror needs one of them: by a webhook as
// plain JSON, or by a robot of WeCom, DingTalk or Feishu.
//
// What lives here: which outcome is worth telling (class.go), what is said in
// which language (texts*.go), how each kind of target wants it and what its answer
// means (form.go, send.go), and the loop between the database and the targets
// (alerter.go, deliver.go). What may not: SQL (the mirror keeps the alerts), exit
// codes and error names (the caller judges errors), reading the environment.
//
// Invariants:
//
//   - A target hears of a condition once, again after RemindAfter, and of its end,
//     however many processes watch the same mirror and however often they start.
//     Only a process that dies, or loses the database, between the target's answer
//     and the note of it makes one say the same twice; both have the same id.
//   - Nothing here blocks or fails a sync: Observe only remembers, delivery has its
//     own time, and a target that fails is tried again later, a bounded number of
//     times.
//   - Nothing of a record and no text of the remote is told: codes, counts, names of
//     resources, request ids. The full error is in `xiaoqu-sync status`.
//   - Addresses of robots are secrets. They are in no error, no log and no row.
package alert
