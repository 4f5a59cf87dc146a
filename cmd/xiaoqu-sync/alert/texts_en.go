package alert

func english() texts {
	return texts{
		prefix: "[xiaoqu-sync] ", colon: ": ", comma: ", ", again: " (reminder: not over yet)", feishu: "en_us",
		labels: labels{
			what: "What happened", meaning: "For the data", next: "What to do", code: "Code", request: "Request",
			since: "Since", host: "Host", from: "From",
		},
		classes: map[Class]wording{
			Halt: {
				"sync stopped", "The run failed and trying again will not help: a person must act ({code}).",
				"The mirror stands at the last whole page: what is there can be read and gets no newer.",
				"Look at xiaoqu-sync status, act on the error, then run xiaoqu-sync sync.",
			},
			Credentials: {
				"credentials refused", "Xiaoqu refuses the service key, or the token that it has just given for it.",
				"The mirror stands at the last whole page: what is there can be read, and no resource gets newer.",
				"Check in the Xiaoqu admin console that the service key is neither rotated nor revoked, set the current one, then run xiaoqu-sync check.",
			},
			Held: {
				"rebuild held", "A rebuild would delete more rows than it may (deleted/live: {detail}).",
				"Nothing has changed: readers see the rows of before the rebuild.",
				"Look at what it would delete with xiaoqu-sync status; then xiaoqu-sync rebuild {resource} --accept-deletes if that is right, --abort if not.",
			},
			Stale: {
				"data is old", "The data is as of {since}, longer ago than {limit}.",
				"Readers see the data of that time and none of the changes since.",
				"Look at the last run in xiaoqu-sync status; trouble with the network and rate limits passes, anything else says what to do.",
			},
			Drift: {
				"the mirror differs", "A verification found rows that differ, and no change since explains it (rows: {detail}).",
				"Readers may see wrong rows, and increments do not put them right.",
				"Run xiaoqu-sync rebuild {resource}, and keep the report for Xiaoqu's support.",
			},
			Recovered: {"recovered", "Over: {classes}.", "Reading goes on as before; xiaoqu-sync status says as of when the data is.", "Nothing."},
			trial: {
				"test message", "Somebody ran xiaoqu-sync alert test.", "Nothing.", "Nothing: alerts arrive, or you would not read this.",
			},
		},
		codes: englishCodes(),
	}
}

func englishCodes() map[string]wording {
	return map[string]wording{
		codeLagging: {
			what: "Syncs end well, and yet Xiaoqu gives the data as of {since}, longer ago than {limit}.",
			next: "Ask Xiaoqu's support whether its snapshots lag or its clock is wrong; look at the database server's clock too.",
		},
		codeNever: {
			what:    "The first sync began at {since} and is not complete after more than {limit}.",
			meaning: "The tables hold a part of the data only and do not pass for all of it.",
		},
		"KEY_INVALID": {
			what: "There is no service key, or what was given is none.",
			next: "Give xiaoqu-sync the service key (xqok-…) from the Xiaoqu admin console, then run xiaoqu-sync check.",
		},
		"PERMISSION_DENIED": {
			what: "Xiaoqu denies access: the tool is not in the scope of this service (PERMISSION_DENIED).",
			next: "Ask the Xiaoqu administrator to add the sync tool to the scope of this service.",
		},
		"INVALID_ARGUMENT": {
			what: "Xiaoqu does not take the arguments of a request (INVALID_ARGUMENT).",
			next: "Give the request id to Xiaoqu's support, and see whether xiaoqu-sync needs an upgrade.",
		},
		"MALFORMED": {
			what: "Xiaoqu's answer breaks the contract (MALFORMED).",
			next: "Give the request id to Xiaoqu's support; xiaoqu-sync status says what was seen.",
		},
		"SYNC_CURSOR_EXPIRED": {
			what: "The cursor expired again and again during a rebuild (SYNC_CURSOR_EXPIRED).",
			next: "The next sync begins it anew; if that fails too, give the request id to Xiaoqu's support.",
		},
		"NOT_A_SERVICE_TOKEN": {
			what: "The token is not a service's, and only those may sync.",
			next: "Use a service key of the tenant, not a personal token.",
		},
		"NO_SYNC_CAPABILITY": {
			what: "The token has no SYNC capability.",
			next: "Ask the Xiaoqu administrator to bind the scope \"sync\" to this service.",
		},
		"ANOTHER_TENANT": {
			what: "The token belongs to another tenant than this mirror.",
			next: "Go back to the first tenant's key, or give the other one a database.schema of its own.",
		},
		"MISSING_TOOL": {
			what: "Xiaoqu does not offer the resource's sync tool to this service.",
			next: "Check the spelling of the resource, or ask the Xiaoqu administrator to add the tool to the scope.",
		},
		"SCHEMA_MISMATCH": {
			what: "The database's schema does not fit this program.",
			next: "Run xiaoqu-sync migrate, or use the release that fits.",
		},
		"DATABASE_REFUSED": {
			what: "PostgreSQL refuses the login or lacks a right.",
			next: "Run xiaoqu-sync check, which lists what is missing.",
		},
	}
}
