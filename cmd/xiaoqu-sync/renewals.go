package main

import "sync/atomic"

// renewals are told of another login of the database: the connections of the old one
// must go before its lease does.
type renewals struct {
	pools atomic.Pointer[[]func()]
}

// add puts a pool beside those that are told. One goroutine adds.
func (r *renewals) add(reconnect func()) {
	var all []func()
	if before := r.pools.Load(); before != nil {
		all = append(all, *before...)
	}
	all = append(all, reconnect)
	r.pools.Store(&all)
}

func (r *renewals) tell() {
	if all := r.pools.Load(); all != nil {
		for _, reconnect := range *all {
			reconnect()
		}
	}
}
