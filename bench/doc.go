// Command bench measures how fast xiaoqu-sync is: against the remote's own pace,
// against what PostgreSQL can take, and against the script that a user would
// write instead. What is compared is measured in turns within one run, and the
// median of the ratios is told: a time is true on one machine for one hour.
//
//	go run ./bench                      all of it, as a table
//	go run ./bench -only drain,apply    some groups
//	go run ./bench -json out.json -page docs/performance.md -svg docs/performance.svg
//	go run ./bench -check bench/baseline.json
//	go run ./bench -from out.json -check bench/baseline.json
//
// The simulated remote runs in a process of its own, so that the CPU counted here
// is the worker's alone. The database is a throw-away one that keeps what it
// committed (fsync on), or the one that XIAOQU_TEST_DATABASE_URL names.
package main
