package redissource_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"redrive/internal/source"
	"redrive/internal/source/preset"
	"redrive/internal/source/redissource"
	"redrive/internal/source/redissource/redistest"
)

// genuine are the records of each preset.
var genuine = map[string]string{
	"sidekiq": sidekiqFile, "asynq": asynqFile, "initphp-redis": initphpFile, "babelqueue-redis": babelFile, "bullmq": bull6File, "rq": rqFile,
	"daycry-redis": daycryFile,
}

// Every record of every system is replayed in each of its modes: what is in Redis then,
// and was not before, is a golden.
func TestReplay_OfEveryRecord(t *testing.T) {
	for name, file := range genuine {
		for mode := range preset.All()[name].Modes {
			t.Run(name+" "+string(mode), func(t *testing.T) {
				b := newBench(t, name, file)
				before, text := b.dump(), ""
				for _, r := range b.all(100) {
					results, err := b.origin.Act(t.Context(), []source.Act{act(source.Replay, mode, r)})
					b.check(err)
					text += strings.TrimSpace(fmt.Sprintf("%s: %s %s", r.Key, results[0].State, results[0].Why)) + "\n"
				}
				for line := range strings.Lines(b.dump()) {
					if !strings.Contains(before, line) {
						text += line
					}
				}
				b.golden("every-"+name+"-"+string(mode), fleeting.ReplaceAllStringFunc(text, func(part string) string {
					if strings.Contains(before, part) {
						return part
					}
					return "NEW"
				}))
			})
		}
	}
}

// fleeting are times and ids, which a replay can replace with new ones.
var fleeting = regexp.MustCompile(`\b\d{10,}[-.0-9]*\b|\d{4}-\d\d-\d\dT[0-9:.]+Z|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)

// dump is the whole content of the Redis, as text.
func (b *bench) dump() string {
	b.Helper()
	return redistest.Dump(b.T, b.redis, b.everyKey()...)
}

func (b *bench) everyKey() []string {
	b.Helper()
	keys, err := b.redis.Keys(b.Context(), "*").Result()
	b.check(err)
	slices.Sort(keys)
	return keys
}

// everything is the whole content of the Redis, byte for byte.
func (b *bench) everything() (text string) {
	b.Helper()
	for _, key := range b.everyKey() {
		text += fmt.Sprintf("%s=%q\n", key, b.content(key))
	}
	return text
}

// content is what a key holds. Redis moves the fields of a hash and the members of a set
// in memory while it is idle, so that their order says nothing.
func (b *bench) content(key string) any {
	b.Helper()
	kind, err := b.redis.Type(b.Context(), key).Result()
	b.check(err)
	var content any
	switch kind {
	case "hash":
		content, err = b.redis.HGetAll(b.Context(), key).Result()
	case "set":
		content, err = b.redis.SMembersMap(b.Context(), key).Result()
	default:
		content, err = b.redis.Dump(b.Context(), key).Result()
	}
	b.check(err)
	return content
}

// granted are the rules of a line of a preset's grants, without the words between them.
func granted(p *preset.Preset, purpose string) (rules []any) {
	for _, line := range p.Grants {
		list, _ := strings.CutPrefix(line, "to "+purpose+": ")
		if list == line {
			continue
		}
		for word := range strings.FieldsSeq(list) {
			if strings.HasPrefix(word, "+") || strings.HasPrefix(word, "~") {
				rules = append(rules, strings.TrimSuffix(word, ","))
			}
		}
	}
	return rules
}

// as opens the source as a user of Redis.
func (b *bench) as(user string) *redissource.Origin {
	b.Helper()
	o, err := redissource.Open(b.Context(), "redis://"+user+":secret@"+b.redis.Options().Addr, b.preset, preset.Settings{})
	b.check(err)
	b.Cleanup(func() { b.check(o.Close()) })
	return o
}

func TestGrants_AreEnough(t *testing.T) {
	for name, file := range genuine {
		b := newBench(t, name, file)
		rules := slices.Concat(granted(b.preset, "look"), granted(b.preset, "replay"), granted(b.preset, "discard"))
		b.check(b.redis.Do(t.Context(), slices.Concat([]any{"ACL", "SETUSER", "op", "on", ">secret", "resetkeys"}, rules)...).Err())
		b.origin = b.as("op")
		report, err := b.origin.Check(t.Context())
		b.check(err)
		if len(report.May) != 2 {
			t.Errorf("%s: %+v", name, report)
		}
		all := b.all(100)
		b.does(act(source.Replay, source.Once, all[0]), source.Done)
		b.does(act(source.Discard, "", all[1]), source.Done)
	}
}

// A URL with another database than 0 has Redis select it.
func TestGrants_AreEnoughForEveryDatabase(t *testing.T) {
	for name, file := range genuine {
		newBench(t, name, file).looksIntoAnotherDatabase()
	}
	yii := newBench(t, "yii2-redis", yiiFile)
	keepFailed(yii, "1")
	yii.looksIntoAnotherDatabase()
	for _, own := range owns {
		newOwn(t, own.names, own.commands...).looksIntoAnotherDatabase("~*")
	}
}

// looksIntoAnotherDatabase moves what is there to the database 3, where a user finds it who has
// the rights to look, and these.
func (b *bench) looksIntoAnotherDatabase(rights ...any) {
	b.Helper()
	rules := slices.Concat([]any{"ACL", "SETUSER", "op", "on", ">secret", "resetkeys"}, granted(b.preset, "look"), rights)
	b.check(b.redis.Do(b.Context(), rules...).Err())
	b.check(b.redis.Do(b.Context(), "SWAPDB", 0, 3).Err())
	o, err := redissource.Open(b.Context(), "redis://op:secret@"+b.redis.Options().Addr+"/3", b.preset, b.settings)
	if err != nil {
		b.Errorf("%s: %v", b.preset.Name, err)
		return
	}
	page, err := o.Scan(b.Context(), "", 100)
	if err != nil || len(page.Records) == 0 {
		b.Errorf("%s: %d records, %v", b.preset.Name, len(page.Records), err)
	}
	b.check(o.Close())
}

// TestAct_RefusesBeforeItLosesAJob takes one command away that a script needs late.
func TestAct_RefusesBeforeItLosesAJob(t *testing.T) {
	b := newBench(t, "sidekiq", sidekiqFile)
	b.check(b.redis.Do(t.Context(), "ACL", "SETUSER", "op", "on", ">secret", "allkeys", "+@all", "-zrem").Err())
	b.origin = b.as("op")
	report, err := b.origin.Check(t.Context())
	b.check(err)
	if len(report.May) != 0 {
		t.Errorf("may %v", report.May)
	}
	r := b.record("84aa00c0b4f43ea65f51a423")
	b.does(act(source.Replay, source.Once, r), source.Refused)
	if n := b.redis.Exists(t.Context(), "queue:orders").Val(); n != 0 {
		t.Error("the job is in the queue and dead")
	}
}

func TestAct_SendsAScriptThatTheServerHasForgotten(t *testing.T) {
	b := newBench(t, "sidekiq", sidekiqFile)
	all := b.all(10)
	b.does(act(source.Replay, source.Once, all[0]), source.Done)
	b.check(b.redis.ScriptFlush(t.Context()).Err())
	acts := []source.Act{act(source.Replay, source.Once, all[1]), act(source.Discard, "", all[2]), act(source.Replay, "other", all[2])}
	for i := range acts {
		acts[i].ID = int64(i + 1)
	}
	results, err := b.origin.Act(t.Context(), acts)
	b.check(err)
	if len(results) != 3 || results[0].State != source.Done || results[1].State != source.Done || results[2].State != source.Refused || results[2].ID != 3 {
		t.Errorf("%+v", results)
	}
}

// TestAct_IsNotSentTwice loses the answer to a replay. Sent once more it would find the
// record gone, as if another had taken it.
func TestAct_IsNotSentTwice(t *testing.T) {
	b := newBench(t, "sidekiq", sidekiqFile)
	r := b.record("84aa00c0b4f43ea65f51a423")
	address := deafAfter(t, b.redis.Options().Addr, "EVALSHA", "evalsha")
	o, err := redissource.Open(t.Context(), "redis://"+address, b.preset, preset.Settings{})
	b.check(err)
	defer o.Close()
	if _, err := o.Scan(t.Context(), "", 1); err != nil {
		t.Fatal(err)
	}
	b.does(act(source.Discard, "", b.record("1590ce296c3f9fae6c31b07e")), source.Done) // the scripts are known
	results, err := o.Act(t.Context(), []source.Act{act(source.Replay, source.Once, r)})
	if err == nil || len(results) != 0 {
		t.Errorf("%+v, %v", results, err)
	}
}

// What a server was not told is asked for again when it is back, and never unknown.
func TestAct_SaysWhatItWasNotTold(t *testing.T) {
	b := newBench(t, "sidekiq", sidekiqFile)
	r := b.record("84aa00c0b4f43ea65f51a423")
	o, err := redissource.Open(t.Context(), "redis://"+b.redis.Options().Addr, b.preset, preset.Settings{})
	b.check(err)
	b.check(o.Close())
	var asked []source.Act
	for id := range int64(60) { // more than are sent at once
		a := act(source.Discard, "", r)
		a.ID = id
		asked = append(asked, a)
	}
	results, err := o.Act(t.Context(), asked)
	if err == nil || !slices.EqualFunc(results, asked, func(r source.Result, a source.Act) bool { return r.ID == a.ID && r.State == source.Asked }) {
		t.Errorf("%+v, %v", results, err)
	}
}

// A server that has become a replica does nothing, and says no to nothing: the source fails
// over, and what was asked for is done there.
func TestAct_WaitsForAMaster(t *testing.T) {
	b := newBench(t, "sidekiq", sidekiqFile)
	r := b.record("84aa00c0b4f43ea65f51a423")
	b.check(b.redis.ReplicaOf(t.Context(), "127.0.0.1", "1").Err())
	results, err := b.origin.Act(t.Context(), []source.Act{act(source.Replay, source.Once, r)})
	if err == nil || len(results) != 0 {
		t.Errorf("a replica answered %+v, %v", results, err)
	}
	b.check(b.redis.ReplicaOf(t.Context(), "NO", "ONE").Err())
	b.does(act(source.Replay, source.Once, r), source.Done)
}

// deafAfter passes on what a client says, and what the server answers until a word comes.
func deafAfter(t *testing.T, server string, words ...string) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			go pass(client, server, words)
		}
	}()
	return l.Addr().String()
}

func pass(client net.Conn, server string, words []string) {
	defer client.Close()
	to, err := net.Dial("tcp", server)
	if err != nil {
		return
	}
	defer to.Close()
	go func() { _, _ = io.Copy(client, to) }()
	buffer := make([]byte, 1<<16)
	for {
		n, err := client.Read(buffer)
		if err != nil {
			return
		}
		said := string(buffer[:n])
		if slices.ContainsFunc(words, func(w string) bool { return strings.Contains(said, w) }) {
			client.Close() // before the server has been asked: its answer is lost
			_, _ = to.Write(buffer[:n])
			return
		}
		_, _ = to.Write(buffer[:n])
	}
}

func TestCheck_WarnsOfAMemoryThatEvicts(t *testing.T) {
	b := newBench(t, "asynq", asynqFile)
	b.check(b.redis.ConfigSet(t.Context(), "maxmemory-policy", "allkeys-lru").Err())
	report, err := b.origin.Check(t.Context())
	b.check(err)
	if !slices.ContainsFunc(report.Warnings, func(w string) bool { return strings.Contains(w, "maxmemory-policy allkeys-lru") }) {
		t.Errorf("%q", report.Warnings)
	}
}

func TestOpen_SaysNothingOfAPassword(t *testing.T) {
	for _, address := range []string{"http://u:hunter2@h", "redis://u:hunter2@h:port", "redis://u:hunter2@127.0.0.1:1/0", "redis://u:hunter2@127.0.0.1:1/x"} {
		_, err := redissource.Open(t.Context(), address, preset.All()["asynq"], preset.Settings{})
		if err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", address, err)
		}
	}
}

// newCluster starts a Cluster of so many nodes, which share the slots. The bench has a
// client of the first one.
func newCluster(t *testing.T, name string, nodes int) *bench {
	b := &bench{T: t, preset: preset.All()[name]}
	var all []*redis.Client
	for i := range nodes {
		bus := redistest.FreePort(t)
		node := redistest.Start(t, "--cluster-enabled", "yes", "--cluster-node-timeout", "2000", "--cluster-port", bus)
		b.check(node.ClusterAddSlotsRange(t.Context(), i*16384/nodes, (i+1)*16384/nodes-1).Err())
		host, port, err := net.SplitHostPort(node.Options().Addr)
		b.check(err)
		all = append(all, node)
		b.check(all[0].Do(t.Context(), "CLUSTER", "MEET", host, port, bus).Err())
	}
	b.redis = all[0]
	waits := func(node *redis.Client) bool {
		info := node.ClusterInfo(t.Context()).Val()
		return !strings.Contains(info, "cluster_state:ok") || !strings.Contains(info, fmt.Sprintf("cluster_size:%d\r", nodes))
	}
	for end := time.Now().Add(time.Minute); slices.ContainsFunc(all, waits); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the Cluster is not ready")
		}
	}
	return b
}

// Queues are on all nodes of a Cluster. Each queue is found, and its records are replayed
// where they are. When a node is away, a look fails, and no record of the node is gone.
func TestCluster_HasQueuesOnAllOfItsNodes(t *testing.T) {
	b := newCluster(t, "asynq", 3)
	cluster := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{b.redis.Options().Addr}, Protocol: 2})
	t.Cleanup(func() { b.check(cluster.Close()) })
	const queues = 12
	for i := range queues {
		b.archiveIn(cluster, fmt.Sprint("q", i), 3)
	}
	var alone sync.Mutex
	owners := map[string]int64{}
	b.check(cluster.ForEachMaster(t.Context(), func(ctx context.Context, node *redis.Client) error {
		keys, err := node.DBSize(ctx).Result()
		alone.Lock()
		defer alone.Unlock()
		owners[node.Options().Addr] = keys
		return err
	}))
	for node, keys := range owners {
		if keys < 4 || len(owners) != 3 {
			t.Fatalf("%s has %d keys of %v", node, keys, owners)
		}
	}
	b.origin = b.open()
	met := map[string]bool{}
	for _, r := range b.all(10) {
		met[r.Key] = true
	}
	if len(met) != 3*queues {
		t.Errorf("%d records were met, not %d", len(met), 3*queues)
	}
	for i := range queues {
		b.does(act(source.Replay, source.Once, b.record(fmt.Sprintf("q%d/q%d-00000", i, i))), source.Done)
	}
	pending := int64(0)
	for i := range queues {
		pending += cluster.LLen(t.Context(), fmt.Sprintf("asynq:{q%d}:pending", i)).Val()
	}
	if pending != queues {
		t.Errorf("%d of %d records came to work", pending, queues)
	}

	last := b.record("q0/q0-00001")
	b.check(cluster.ForEachMaster(t.Context(), func(ctx context.Context, node *redis.Client) error {
		if node.Options().Addr != b.redis.Options().Addr {
			node.ShutdownNoSave(ctx) // the connection ends with it
		}
		return nil
	}))
	if page, err := b.origin.Scan(t.Context(), "", 100); err == nil {
		t.Errorf("a look without two nodes finds %d records", len(page.Records))
	}
	if found, err := b.origin.Find(t.Context(), []source.Act{act(source.Discard, "", last)}); err == nil && found[0].State == source.Gone {
		t.Error("what lies on a node that is away counts as gone")
	}
}

func TestCluster_ActsWhereTheKeysAreTogether(t *testing.T) {
	b := newCluster(t, "asynq", 1)
	redistest.Load(t, b.redis, "../testdata", asynqFile)
	b.origin = b.open()
	report, err := b.origin.Check(t.Context())
	b.check(err)
	if len(report.May) != 2 || !strings.HasSuffix(report.Sees[0], ", a Cluster") {
		t.Errorf("%+v", report)
	}
	b.does(act(source.Replay, source.Once, b.record("order-1")), source.Done)
}

func TestCluster_RefusesWhatIsInDifferentSlots(t *testing.T) {
	b := newCluster(t, "initphp-redis", 1)
	b.check(b.redis.RPush(t.Context(), "orders:failed", `{"job":"a","data":{},"meta":{"id":"1"}}`).Err())
	b.check(b.redis.RPush(t.Context(), "{shop}mail:failed", `{"job":"b","data":{},"meta":{"id":"2"}}`).Err())
	b.origin = b.open()
	r := b.does(act(source.Replay, source.Once, b.record("orders/1")), source.Refused)
	if !strings.Contains(r.Why, "different hash slots of the Redis Cluster") {
		t.Error(r.Why)
	}
	b.does(act(source.Replay, source.Once, b.record("{shop}mail/2")), source.Done)
	b.finds(b.record("orders/1"), source.Asked)
}
