package migrations

// Lock is lock.
var Lock = lock
