package alert

func chinese() texts {
	return texts{
		prefix: "【小趣同步】", colon: "：", comma: "、", again: "（提醒：仍未恢复）", feishu: "zh_cn",
		labels: labels{
			what: "发生了什么", meaning: "对数据的影响", next: "怎么处理", code: "错误码", request: "请求号",
			since: "开始时间", host: "主机", from: "来自",
		},
		classes: map[Class]wording{
			Halt: {
				"同步中断", "同步失败，重试无用，需要人工处理（{code}）。",
				"镜像停在最后一个完整页：已有的行照常可读，但不再更新。",
				"执行 xiaoqu-sync status 查看原因，处理后执行 xiaoqu-sync sync。",
			},
			Credentials: {
				"凭证被拒绝", "小趣拒绝了服务密钥，或拒绝了用它刚换来的 Token。",
				"镜像停在最后一个完整页：已有的行照常可读，但所有资源都不再更新。",
				"在小趣管理后台确认服务密钥没有被轮换或吊销，换上当前密钥后执行 xiaoqu-sync check。",
			},
			Held: {
				"重建被拦下", "重建将要删除的行超过了上限（删除行数/现有行数：{detail}）。",
				"没有任何改变：读者看到的仍是重建之前的行。",
				"执行 xiaoqu-sync status 查看将要删除什么；确认无误后执行 xiaoqu-sync rebuild {resource} --accept-deletes，否则用 --abort 放弃。",
			},
			Stale: {
				"数据过期", "数据停在 {since}，已经超过 {limit}。",
				"读者看到的是那个时间的数据，之后的变化都还没有。",
				"执行 xiaoqu-sync status 查看最近一次运行；网络或限流问题会自行恢复，否则按其中的错误处理。",
			},
			Drift: {
				"镜像与小趣不一致", "核对发现有行不一致，且不能用之后的变化解释（行数：{detail}）。",
				"读者可能读到错误的行，增量同步不会修正它们。",
				"执行 xiaoqu-sync rebuild {resource}，并保留核对结果交给小趣支持。",
			},
			Recovered: {"已恢复", "以下问题已解除：{classes}。", "读者照常读取；数据时间见 xiaoqu-sync status。", "无需处理。"},
			trial: {
				"测试消息", "有人执行了 xiaoqu-sync alert test。", "没有影响。", "能看到这条消息，说明告警可以送达。",
			},
		},
		codes: chineseCodes(),
	}
}

func chineseCodes() map[string]wording {
	return map[string]wording{
		codeLagging: {
			what: "同步成功，但小趣给出的数据截止时间是 {since}，已经超过 {limit}。",
			next: "请小趣支持检查快照是否滞后、时钟是否准确；也检查数据库服务器的时钟。",
		},
		codeNever: {
			what:    "自 {since} 开始第一次同步，超过 {limit} 仍未完成。",
			meaning: "表里只有一部分数据，不能当作全部使用。",
		},
		"KEY_INVALID": {
			what: "没有提供服务密钥，或提供的不是服务密钥。",
			next: "把小趣管理后台的服务密钥（xqok- 开头）交给 xiaoqu-sync，再执行 xiaoqu-sync check。",
		},
		"PERMISSION_DENIED": {
			what: "小趣拒绝访问：工具不在本服务的授权范围内（PERMISSION_DENIED）。",
			next: "请小趣管理员把对应的同步工具加入本服务的 scope。",
		},
		"INVALID_ARGUMENT": {
			what: "小趣不接受请求的参数（INVALID_ARGUMENT）。",
			next: "把请求号交给小趣支持，并检查 xiaoqu-sync 是否需要升级。",
		},
		"MALFORMED": {
			what: "小趣的响应不符合接入规范（MALFORMED）。",
			next: "把请求号交给小趣支持；xiaoqu-sync status 里有所见的内容。",
		},
		"SYNC_CURSOR_EXPIRED": {
			what: "全量重建途中游标反复过期（SYNC_CURSOR_EXPIRED）。",
			next: "下一次同步会重新重建；若仍失败，把请求号交给小趣支持。",
		},
		"NOT_A_SERVICE_TOKEN": {
			what: "Token 不是服务 Token，不能用于同步。",
			next: "使用租户的服务密钥，而不是个人 Token。",
		},
		"NO_SYNC_CAPABILITY": {
			what: "Token 没有 SYNC 能力。",
			next: "请小趣管理员给本服务绑定 scope「sync」。",
		},
		"ANOTHER_TENANT": {
			what: "Token 属于另一个租户，与这个镜像的租户不同。",
			next: "换回原租户的密钥，或为新租户另设 database.schema。",
		},
		"MISSING_TOOL": {
			what: "小趣没有向本服务提供该资源的同步工具。",
			next: "检查资源名的拼写，或请小趣管理员把工具加入 scope。",
		},
		"SCHEMA_MISMATCH": {
			what: "数据库结构与本程序的版本不符。",
			next: "执行 xiaoqu-sync migrate，或换用与数据库相符的版本。",
		},
		"DATABASE_REFUSED": {
			what: "PostgreSQL 拒绝登录，或缺少权限。",
			next: "执行 xiaoqu-sync check 查看缺少什么。",
		},
	}
}
