package remotetest

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"
)

// Seed adds made-up records: people of a cleaning service, the properties that
// they look after, and the contracts. Ids have 19 digits. The same Options.Seed
// and the same calls give the same records; 100,000 take half a second of CPU.
func (s *Server) Seed(users, properties, contracts int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := &s.seeder
	g.stringIDs = s.variants.StringIDs
	for _, batch := range []struct {
		name string
		n    int
		make func(*seeder, []byte) []byte
	}{
		{"users", users, (*seeder).user},
		{"properties", properties, (*seeder).property},
		{"contracts", contracts, (*seeder).contract},
	} {
		r := s.resources[batch.name]
		var fields []byte
		for range batch.n {
			g.made[batch.name]++
			fields = batch.make(g, fields[:0])
			r.set(newRow(s.variants, g.id(batch.name, g.made[batch.name]), fields, s.clock.past(), false))
		}
	}
}

// seeder makes fields up; its state is the random source and how many records
// of each kind there are.
type seeder struct {
	*rand.Rand
	made      map[string]int
	stringIDs bool
}

func newSeeder(seed uint64) seeder {
	return seeder{Rand: rand.New(rand.NewPCG(seed, 0x9e3779b97f4a7c15)), made: map[string]int{}}
}

// id is a snowflake-like number of 19 digits, beyond what a float64 can hold.
func (g *seeder) id(kind string, n int) string {
	base := map[string]int64{"users": 1826000000000000001, "properties": 1839000000000000003, "contracts": 1852000000000000007}
	return strconv.FormatInt(base[kind]+int64(n)*4194307, 10)
}

// reference names a record of another kind; n may be 0 when there is none yet.
func (g *seeder) reference(kind string) string {
	n := 1
	if made := g.made[kind]; made > 0 {
		n += g.IntN(made)
	}
	return string(appendID(nil, g.id(kind, n), g.stringIDs))
}

func (g *seeder) pick(list ...string) string { return list[g.IntN(len(list))] }

func (g *seeder) name() string {
	surname := g.pick("王", "李", "张", "刘", "陈", "杨", "黄", "赵", "周", "吴", "徐", "孙", "欧阳", "司徒", "㛃", "仝")
	given := g.pick("伟", "芳", "娜", "秀英", "敏", "静", "丽", "强", "磊", "洋", "艳", "勇", "建国", "志强", "子涵", "梓萱", "𬱖", "春燕")
	return surname + given
}

func (g *seeder) mobile() string {
	return g.pick("138", "139", "150", "186", "177") + fmt.Sprintf("%08d", g.IntN(100_000_000))
}

func (g *seeder) date(year, years int) time.Time {
	return time.Date(year, 1, 1, 0, 0, 0, 0, shanghai()).AddDate(0, 0, g.IntN(365*years))
}

// money has cents and keeps a zero at its end: 12800.50, not 12800.5.
func (g *seeder) money(from, to int) string {
	return fmt.Sprintf("%d.%02d", from+g.IntN(to-from), 10*g.IntN(10))
}

func (g *seeder) user(b []byte) []byte {
	return fmt.Appendf(b, `"name":"%s","mobile":"%s","department":"%s","position":"%s","status":"%s","entry_date":"%s","email":"u%06d@example.com"`,
		g.name(), g.mobile(),
		g.pick("华东一区", "华东二区", "华南大区", "客服中心", "品质部", "财务部"),
		g.pick("区域经理", "项目经理", "保洁主管", "保洁员", "客服专员", "品质督导"),
		g.pick("ACTIVE", "ACTIVE", "ACTIVE", "LEAVE"), g.date(2019, 7).Format(time.DateOnly), g.made["users"])
}

func (g *seeder) property(b []byte) []byte {
	city := g.pick("上海市浦东新区", "杭州市西湖区", "南京市鼓楼区", "苏州市工业园区", "深圳市南山区", "成都市高新区")
	estate := g.pick("翠湖天地", "万科城市花园", "金地格林", "绿城桂花园", "保利香槟国际", "仁恒滨江园", "中海环宇城")
	return fmt.Appendf(b, `"name":"%s%d期","address":"%s%s%d号 %d栋%d单元%d%02d室","type":"%s","area_sqm":%d.%d,"floors":%d,`+
		`"owner":{"name":"%s","mobile":"%s"},"manager_id":%s,"location":{"lng":%d.%06d,"lat":%d.%06d},"tags":["%s","%s"]`,
		estate, 1+g.IntN(4), city, g.pick("世纪大道", "文三路", "中山北路", "星湖街", "科苑路", "天府大道"), 1+g.IntN(999),
		1+g.IntN(30), 1+g.IntN(4), 1+g.IntN(32), 1+g.IntN(8), g.pick("住宅", "写字楼", "商铺", "产业园"),
		40+g.IntN(400), g.IntN(10), 1+g.IntN(33), g.name(), g.mobile(), g.reference("users"),
		104+g.IntN(17), g.IntN(1_000_000), 22+g.IntN(10), g.IntN(1_000_000), g.pick("重点客户", "新签", "续约"), g.pick("日常保洁", "外墙清洗"))
}

func (g *seeder) contract(b []byte) []byte {
	start := g.date(2024, 2)
	cycle := g.pick("月付", "季付", "半年付", "年付")
	months := 12 * (1 + g.IntN(3))
	return fmt.Appendf(b, `"contract_no":"XQ-HT-%s-%06d","property_id":%s,"signer_id":%s,"customer":"%s","customer_mobile":"%s",`+
		`"start_date":"%s","end_date":"%s","term_months":%d,"amount":%s,"deposit":%s,"payment_cycle":"%s","status":"%s",`+
		`"terms":"乙方每周清洁 %d 次，甲方按“%s”结算；逾期每日加收 0.05%% 违约金。","attachments":[]`,
		start.Format("200601"), g.made["contracts"], g.reference("properties"), g.reference("users"), g.name(), g.mobile(),
		start.Format(time.DateOnly), start.AddDate(0, months, -1).Format(time.DateOnly), months,
		g.money(3000, 500_000), g.money(0, 20_000), cycle, g.pick("执行中", "执行中", "执行中", "已到期", "已终止"), 1+g.IntN(7), cycle)
}
