package fingerprint

import (
	"slices"
	"strings"
	"testing"
)

const goTrace = `goroutine 41 [running]:
runtime/debug.Stack()
	/usr/local/go/src/runtime/debug/stack.go:26 +0x5e
redrive/internal/engine.panicked({0x8d5c20, 0xc0001a2018})
	/src/internal/engine/execution.go:141 +0x45
panic({0x8d5c20?, 0xc0001a2018?})
	/usr/local/go/src/runtime/panic.go:787 +0x132
runtime.goPanicIndex(0x5, 0x3)
	/usr/local/go/src/runtime/panic.go:115 +0x74
encoding/json.(*decodeState).value(0xc000123456, {0x1, 0x2})
	/usr/local/go/src/encoding/json/decode.go:380
shop/payments.(*Client).Capture(0xc000123456, {0x1, 0x2})
	/src/payments/client.go:142 +0x1d
shop/payments.HandleCapture.func2(...)
	/src/payments/capture.go:58
github.com/lib/thing.Run(0x1)
	/root/go/pkg/mod/github.com/lib/thing@v1.2.3/run.go:9 +0x2
main.main()
	/src/main.go:9 +0x2
created by redrive/internal/engine.(*Engine).hand in goroutine 1
	/src/internal/engine/execution.go:101 +0x9
`

const pythonTrace = `Traceback (most recent call last):
  File "/app/worker.py", line 10, in main
    run(job)
  File "/usr/lib/python3.12/site-packages/requests/api.py", line 59, in get
    return request("get", url)
  File "/app/mailer.py", line 77, in send
    raise ValueError("at 7")
ValueError: at 7
`

const javaTrace = `java.lang.IllegalStateException: outer
	at com.shop.Worker.run(Worker.java:12)
	at java.base/java.lang.Thread.run(Thread.java:840)
Caused by: java.io.IOException: inner
	at java.base/java.io.FileInputStream.open0(Native Method)
	at com.shop.Reader.lambda$read$0(Reader.java:31)
	at com.shop.Reader$$EnhancerBySpringCGLIB$$1a2b3c4d.read(<generated>)
	at org.springframework.aop.Proxy.invoke(Proxy.java:7)
	... 12 more
`

const jsTrace = `TypeError: x is not a function
    at Object.<anonymous> (/app/node_modules/express/lib/router.js:5:1)
    at async Mailer.send (/app/src/mailer.js:10:5)
    at new Job (/app/src/job.js:3:7)
    at /app/src/index.js:99:1
    at process.processTicksAndRejections (node:internal/process/task_queues:95:5)
`

const phpTrace = `#0 /app/vendor/guzzle/Client.php(12): GuzzleHttp\Client->transfer(Array)
#1 /app/src/Mailer.php(34): GuzzleHttp\Client->request(Array)
#2 [internal function]: App\Mailer->send(Object(App\Job), 'x')
#3 /app/bin/work.php(5): array_map(Object(Closure))
#4 {main}
`

const railsTrace = "activerecord (7.1.3) lib/active_record/adapter.rb:884:in `exec_params'\napp/services/signup.rb:12:in `create'\n"

const rubyTrace = "/app/lib/mailer.rb:12:in `deliver'\n\tfrom /usr/lib/ruby/gems/3.2/gems/sidekiq/x.rb:1:in `call'\n\tfrom /app/bin/run.rb:3:in 'Runner#main'\n"

func TestFrames_AreTheInnermostOfTheProgram(t *testing.T) {
	for name, c := range map[string]struct {
		trace string
		want  []string
	}{
		"go":     {goTrace, []string{"shop/payments.(*Client).Capture", "shop/payments.HandleCapture"}},
		"python": {pythonTrace, []string{`mailer.py send: raise ValueError("at 7")`}},
		"java":   {javaTrace, []string{"com.shop.Reader.lambda$read", "com.shop.Reader$$EnhancerBySpringCGLIB$.read"}},
		"js":     {jsTrace, []string{"Mailer.send", "Job"}},
		"php":    {phpTrace, []string{`App\Mailer->send`}},
		"php, thrown by the program": {
			"PHP Fatal error:  Uncaught App\\Denied: no in /app/src/Gate.php:3\nStack trace:\n#0 /app/src/Gate.php(9): App\\Gate->check()\n#1 {main}\n",
			[]string{`App\Gate->check`},
		},
		"php, thrown by a library": {
			"/app/vendor/db/Db.php:3\n#0 /app/src/Users.php(9): Db->insert()\n#1 /app/vendor/router/Route.php(3): App\\Users->create()\n",
			[]string{`App\Users->create`},
		},
		"rails":     {railsTrace, []string{"signup.rb create"}},
		"ruby":      {rubyTrace, []string{"mailer.rb deliver"}},
		"dotnet":    {"System.X: y\n   at Shop.Mailer.Send(String to) in C:\\src\\Mailer.cs:line 12\n   at System.Threading.Run()\n", []string{"Shop.Mailer.Send"}},
		"text":      {"src/main.go:1", []string{"main.go"}},
		"a logger":  {"main.go:1: no rate", nil},
		"compilers": {"src/close.ts(14,9): error TS2339: no\nsrc/open.ts:12:9 - error TS2339: no", []string{"close.ts", "open.ts"}},
		"lines":     {"fatal: x\n  (lib/y.pl:12)\nhttp://a.example:80/x\n12:30 done", []string{"y.pl"}},
		"mock":      {"paylane: 503\n  body: {}\nat payments.(*Client).Capture\n   client.go:142\n", []string{"payments.(*Client).Capture"}},
		"go, no arguments": {
			"paylane: 503 Service Unavailable\n  body: {\"until\":\"14:30\"}\npayments.(*Client).Capture\n\tshop/payments/client.go:142\npayments.HandleCapture.func1\n\tshop/payments/capture.go:58",
			[]string{"payments.(*Client).Capture", "payments.HandleCapture"},
		},
		"go, one line": {
			"at payments.(*Client).Capture     payments/client.go:142\nat payments.HandleCapture          payments/capture.go:58\nshop/worker.Loop[...] /root/go/pkg/mod/shop/worker@v1.0.0/loop.go:7",
			[]string{"payments.(*Client).Capture", "payments.HandleCapture"},
		},
		"go, runtime":   {"runtime.gopanic\n\t/usr/local/go/src/runtime/panic.go:787\nmain.main\n\tmain.go:3", []string{"main.main"}},
		"names in text": {"see example.org\n\tfor more\nexample.org says no\nno.\n\tx.pl:1\n", []string{"x.pl"}},
		"rust": {
			"thread 'main' panicked at src/main.rs:4:5:\nno rate\nstack backtrace:\n   0: rust_begin_unwind\n             at /rustc/9fc6b431/library/std/src/panicking.rs:652:5\n" +
				"   1: core::panicking::panic_fmt\n             at /rustc/9fc6b431/library/core/src/panicking.rs:72:14\n   2: feeds::import::{{closure}}::h0123456789abcdef\n             at ./src/main.rs:4:5\n" +
				"   3: <feeds::Job as feeds::Run>::run\n             at ./src/job.rs:9:2\n   4: tokio::task::poll\n             at /root/.cargo/registry/src/index.crates.io-6f17d22bba15001f/tokio-1.28.0/src/a.rs:1:1\n",
			[]string{"feeds::import", "<feeds::Job as feeds::Run>::run"},
		},
		"elixir": {
			"** (RuntimeError) no\n    (elixir 1.13.4) lib/gen_server.ex:1030: GenServer.call/3\n    (shop 0.1.0) lib/shop/lead.ex:12: Shop.Lead.perform/1\n    lib/shop/run.exs:3: anonymous fn/2 in Shop.Run.all/1\n",
			[]string{"Shop.Lead.perform/1", "anonymous fn/2 in Shop.Run.all/1"},
		},
		"dotnet, asynchronous": {
			"   at Shop.Mailer.<SendAsync>d__5.MoveNext() in /src/Mailer.cs:line 12\n   at Shop.Jobs.<>c__DisplayClass3_0.<<Run>b__0>d.MoveNext()\n   at Shop.Jobs.<>c.<All>b__3_0(String to)\n",
			[]string{"Shop.Mailer.SendAsync", "Shop.Jobs.Run", "Shop.Jobs.All"},
		},
		"java, a lambda": {"at com.shop.Worker$$Lambda$14/0x0000000800c03000.run(Unknown Source)\nat com.shop.ReaderImpl.read(ReaderImpl.java:3)\n", []string{"com.shop.Worker$$Lambda.run", "com.shop.ReaderImpl.read"}},
		"js, built": {
			"TypeError: x\n    at t.value (/srv/app/dist/server.4f3a2b1c.js:1:23456)\n    at async n (/srv/app/dist/chunk-BfXk29aQ.js:1:991)\n    at async /srv/app/dist/chunk-Dq81Lm3_.js:1:1402\n",
			[]string{"value", "chunk.js", "chunk.js"},
		},
		"java, one survived": {
			"WARN retrying\njava.net.SocketTimeoutException: no\n\tat com.shop.Client.send(Client.java:4)\nINFO sent\ncom.shop.Declined: no\n\tat com.shop.Client.charge(Client.java:6)\n",
			[]string{"com.shop.Client.charge"},
		},
		"ruby, one survived": {
			"not sent\nbin/a.rb:22:in 'A#mail'\nbin/a.rb:9:in '<main>'\nbin/a.rb:4:in 'A#due': undefined method 'total' for nil (NoMethodError)\nDid you mean?  totals\n\tfrom bin/a.rb:11:in '<main>'\n",
			[]string{"a.rb due"},
		},
		"ruby, the outermost first": {
			"Traceback (most recent call last):\n\t2: from /a/bin.rb:7:in `<main>'\n\t1: from /a/feed.rb:35:in `open'\n/a/feed.rb:31:in `initialize': refused (Errno::ECONNREFUSED)\n" +
				"\t1: from /a/bin.rb:7:in `<main>'\n/a/feed.rb:18:in `rescue in load': not loaded (FeedError)\n",
			[]string{"feed.rb initialize", "feed.rb open"},
		},
		"python, one followed from another": {
			"Traceback (most recent call last):\n  File \"/a/convert.py\", line 12, in convert\n  File \"/a/parse.py\", line 4, in parse\nFormatError: x\n\n" +
				"The above exception was the direct cause of the following exception:\n\nTraceback (most recent call last):\n  File \"/a/jobs.py\", line 30, in run\nJobError: y\n",
			[]string{"parse.py parse", "convert.py convert"},
		},
		"python, one survived and one ignored": {
			"Traceback (most recent call last):\n  File \"/a/a.py\", line 1, in a\nE: x\nretrying\nTraceback (most recent call last):\n  File \"/a/b.py\", line 1, in b\nE: y\n" +
				"Exception ignored in: <function D.__del__>\nTraceback (most recent call last):\n  File \"/a/c.py\", line 1, in c\nE: z\n",
			[]string{"b.py b"},
		},
		"python, a group": {
			"  + Exception Group Traceback (most recent call last):\n  |   File \"/a/sync.py\", line 10, in main\n  | ExceptionGroup: x (2 sub-exceptions)\n  +-+---------------- 1 ----------------\n" +
				"    | Traceback (most recent call last):\n    |   File \"/a/rates.py\", line 4, in fetch\n    | E: y\n    +---------------- 2 ----------------\n" +
				"    | Exception Group Traceback (most recent call last):\n    |   File \"/a/sync.py\", line 13, in two\n    | ExceptionGroup: z\n    +------------------------------------\n",
			[]string{"rates.py fetch"},
		},
		"python, without its beginning, in a container": {
			"worker-1  | in _bootstrap\nworker-1  |   File \"/a/a.py\", line 1, in run\nworker-1  |   File \"/a/a.py\", line 2, in write\nworker-1  | E: x\nworker-1 exited with code 1\n",
			[]string{"a.py write", "a.py run"},
		},
		"go, all goroutines": {
			"panic: x\n\ngoroutine 1 [running]:\nmain.a()\n\t/src/a.go:1 +0x1\n\ngoroutine 7 [chan receive]:\nmain.b()\n\t/src/b.go:1 +0x1\n", []string{"main.a"},
		},
		"none":           {"503 Service Unavailable\n", nil},
		"only libraries": {"at Object.x (/app/node_modules/a.js:1:2)\nat Object.y (node:internal/b:1:2)", []string{"Object.x"}},
	} {
		if got := frames(c.trace, false); !slices.Equal(got, c.want) {
			t.Errorf("%s: frames are %q, want %q", name, got, c.want)
		}
	}
}

// A release moves lines and addresses, a recursion is as deep as its data.
func TestFrames_IgnoreLinesAndAddresses(t *testing.T) {
	moved := strings.NewReplacer("142", "151", "0xc000123456", "0xc0009", "+0x1d", "+0x2e", ".func2", ".func3").Replace(goTrace)
	if a, b := frames(goTrace, false), frames(moved, false); !slices.Equal(a, b) {
		t.Errorf("frames changed from %q to %q", a, b)
	}
	deep := "at a.f (x.js:1:1)\n" + strings.Repeat("at a.g (x.js:2:1)\n", 50) + "at a.h (x.js:3:1)\n"
	if got, want := frames(deep, false), []string{"a.f", "a.g", "a.h"}; !slices.Equal(got, want) {
		t.Errorf("frames of a recursion are %q, want %q", got, want)
	}
}

// What runs out does so wherever the program is just then; where a program begins says nothing
// of a cause; and runtimes write one function in several ways.
func TestOf_OneCauseInSeveralTraces(t *testing.T) {
	for name, c := range map[string]struct{ message, a, b string }{
		"a full heap":                {"java.lang.OutOfMemoryError: Java heap space", "at com.acme.A.read(A.java:1)", "at com.acme.B.write(B.java:1)"},
		"a full disk":                {"OSError: [Errno 28] No space left on device", "  File \"/app/a.py\", line 1, in save", "  File \"/app/b.py\", line 1, in copy"},
		"main":                       {"the feed is empty", "at shop.Feed.load(Feed.java:3)\n\tat shop.Main.main(Main.java:9)", "at shop.Feed.load(Feed.java:3)"},
		"the end of a script":        {"the feed is empty", "    at pull (file:///app/pull.mjs:3:9)\n    at file:///app/pull.mjs:9:1", "    at pull (file:///app/pull.mjs:3:9)"},
		"a class in Ruby 3.4":        {"the feed is empty", "/app/feed.rb:3:in `block in load'", "/app/feed.rb:4:in 'block in Shop::Feed#load'"},
		"arguments in Elixir":        {"the feed is empty", "    (shop 1.0.0) lib/feed.ex:6: Shop.Feed.load/2", `    (shop 1.0.1) lib/feed.ex:7: Shop.Feed.load(%{a: 1, b: "x, y"}, [2, 3])`},
		"Cargo in an image":          {"the feed is empty", "   0: shop::load\n             at ./src/main.rs:4:5", "   0: <core::result::Result<T,E> as anyhow::context::ext::StdError>::ext_context\n             at /usr/local/cargo/registry/src/index/anyhow-1/src/context.rs:27:29\n   1: shop::load\n             at ./src/main.rs:5:5"},
		"the line of a logger of Go": {"the feed is empty", "main.go:17: the feed is empty", "feeds.go:9: the feed is empty"},
	} {
		if a, b := Of("job", "error", c.message, c.a), Of("job", "error", c.message, c.b); a.Fingerprint != b.Fingerprint {
			t.Errorf("%s: %q and %q are told apart", name, a.Frames, b.Frames)
		}
	}
}

// Below a message that says nothing, the statement that failed and the client of a network
// tell what is to be mended.
func TestOf_TellsBareErrorsApart(t *testing.T) {
	for name, c := range map[string]struct{ message, a, b string }{
		"two asserts": {
			"AssertionError", "Traceback (most recent call last):\n  File \"/srv/a.py\", line 31, in <module>\n    assert len(rows) == expected\nAssertionError",
			"Traceback (most recent call last):\n  File \"/srv/a.py\", line 47, in <module>\n    assert debit == credit\nAssertionError",
		},
		"two servers": {
			"Net::ReadTimeout: Net::ReadTimeout",
			"/usr/local/lib/ruby/3.2.0/net/protocol.rb:229:in `rbuf_fill'\n/usr/local/lib/ruby/3.2.0/net/protocol.rb:199:in `readuntil'\n/usr/local/bundle/gems/net-smtp-0.4.0/lib/net/smtp.rb:1017:in `recv_response'",
			"/usr/local/lib/ruby/3.2.0/net/protocol.rb:229:in `rbuf_fill'\n/usr/local/lib/ruby/3.2.0/net/protocol.rb:199:in `readuntil'\n/usr/local/lib/ruby/3.2.0/net/http/response.rb:158:in `read_status_line'",
		},
		"two settings": {"Could not resolve placeholder 'mail.host' in value \"${mail.host}\"", "", ""},
	} {
		other := strings.ReplaceAll(c.message, "mail.host", "report.bucket")
		if a, b := Of("job", "error", c.message, c.a), Of("job", "error", other, c.b); a.Fingerprint == b.Fingerprint {
			t.Errorf("%s are one cause: %q, %q", name, a.Message, a.Frames)
		}
	}
}

// Functions of libraries have other names in each release. They count only below a message
// that says nothing.
func TestOf_CountsLibrariesBelowABareClass(t *testing.T) {
	const older = "at org.hibernate.collection.internal.AbstractPersistentCollection.initialize(AbstractPersistentCollection.java:1)"
	const newer = "at org.hibernate.collection.spi.AbstractPersistentCollection.initialize(AbstractPersistentCollection.java:2)"
	for message, want := range map[string]bool{
		"org.hibernate.LazyInitializationException: could not initialize proxy - no Session": true,
		"java.lang.NullPointerException":     false,
		"java.lang.NullPointerException: 17": false,
		"Error: failed":                      false,
	} {
		a, b := Of("job", "error", message, older), Of("job", "error", message, newer)
		if (a.Fingerprint == b.Fingerprint) != want {
			t.Errorf("%q: one group is %t, want %t: %v and %v", message, !want, want, a, b)
		}
	}
}

func TestFrames_ReadABoundedPart(t *testing.T) {
	long := strings.Repeat("no frame at all\n", 1<<16) + "at a.f (x.js:1:1)"
	if got := frames(long, false); got != nil {
		t.Errorf("frames of a megabyte are %q", got)
	}
	python := "Traceback (most recent call last):\n" + strings.Repeat("  File \"/app/a.py\", line 1, in f\n", 10000) + "  File \"/app/b.py\", line 2, in g\nE: x\n"
	if got, want := frames(python, false), []string{"b.py g", "a.py f"}; !slices.Equal(got, want) {
		t.Errorf("frames of a deep traceback are %q, want %q", got, want)
	}
}
