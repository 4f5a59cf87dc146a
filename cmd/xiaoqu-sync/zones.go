package main

// Schedules and times without a zone need time_zone on machines, and in images,
// that have no zone database. The machine's own comes first.
import _ "time/tzdata"
