package lang_test

import (
	"strings"
	"testing"

	"redrive/internal/errortext/lang"
)

// reads gives texts to the readers, and compares the class and the message that they find.
func reads(t *testing.T, wants map[string]string) {
	t.Helper()
	for text, want := range wants {
		if e := lang.Read(strings.TrimPrefix(text, "\n")); e.String() != want {
			t.Errorf("%s\n got %q\nwant %q", text, e, want)
		}
	}
}

// A line of JSON is one of a logger, which may quote an error that is long over.
func TestRead_LeavesTheLinesOfLoggersAlone(t *testing.T) {
	reads(t, map[string]string{
		`{"level":"info","msg":"the last run","stderr":"PHP Fatal error:  Uncaught RuntimeException: old in /app/a.php:3"}`: "",
		`{"severity":"INFO","message":"child: ** (RuntimeError) old"}`:                                                      "",
		`{"msg":"retried","level":30,"error":"/app/job.rb:3:in 'run': old (RuntimeError)"}`:                                 "",
		`{"@l":"Information","@m":"** Reason for termination == {badarg,[{a,b,0,[]}]}"}`:                                    "",
		`
{"level":"info","msg":"PHP Fatal error:  Uncaught RuntimeException: old in /app/a.php:3"}
PHP Fatal error:  Uncaught LogicException: no rate in /app/a.php:9
Stack trace:
#0 {main}
  thrown in /app/a.php on line 9
{"level":"info","msg":"PHP Fatal error:  Uncaught RuntimeException: other in /app/a.php:3"}`: "LogicException: no rate",
		// An answer that an error quotes is none.
		"ValueError: refused\n{\"status\": 402}\nTraceback": "",
	})
}

// From Elixir 1.18 on, a value stands below what is wrong with it.
func TestRead_TakesTheValueBelowAnErrorOfElixir(t *testing.T) {
	reads(t, map[string]string{
		`
** (MatchError) no match of right hand side value:

    {:error, :econnrefused}

    job.exs:1: (file)`: "MatchError: no match of right hand side value:\n{:error, :econnrefused}",
		`
** (KeyError) key :total not found in:

    %{
      tax: 1
    }

Did you mean:

      * :totals

    (shop 0.1.0) lib/shop.ex:3: Shop.run/1`: "KeyError: key :total not found in:\n%{\n  tax: 1\n}",
		`
** (RuntimeError) the shop said:

    (shop 0.1.0) lib/shop.ex:3: Shop.run/1`: "RuntimeError: the shop said:",
	})
}

// The runtime of Erlang writes the reason below the process that it ended.
func TestRead_TakesTheExitValueOfAProcessOfErlang(t *testing.T) {
	reads(t, map[string]string{
		`
=ERROR REPORT==== 28-Nov-2026::12:00:00.000000 ===
Error in process <0.9.0> with exit value:
{badarith,[{shop,rate,1,[{file,"shop.erl"},{line,3}]},{erl_eval,do_apply,6,[]}]}`: "exit: badarith",
		`
Error in process <0.9.0> on node 'shop@host' with exit value:
{{badmatch,{error,econnrefused}},
 [{shop,rate,1,[{file,"shop.erl"},{line,3}]}]}`: "exit: {badmatch,{error,econnrefused}}",
		`
Error in process <0.9.0> with exit value:
{undef,[{shop,rate,["XAU"],[]}]}`: "exit: undef: shop:rate",
	})
}

// Rails writes the tags of a request before each line, the code of a template between an error
// and its trace, and the causes of an error in a list of their own.
func TestRead_ReadsWhatRailsLogsOfARequest(t *testing.T) {
	const first = "\nF, [2026-11-28T12:00:00.123456 #7] FATAL -- : "
	reads(t, map[string]string{
		first + `[4f1c]   
[4f1c] RuntimeError (no rate for XAU):
[4f1c]   
[4f1c] app/rates.rb:3:in 'RatesController#show'
[4f1c] app/rates.rb:9:in 'block in run'`: "RuntimeError: no rate for XAU",
		first + `[4f1c]   
[4f1c] ActionView::Template::Error (undefined method 'rate' for nil):
[4f1c]     1: <h1>Rates</h1>
[4f1c]     2: <%= metal.rate %>
[4f1c]   
[4f1c] app/views/rates/show.html.erb:2:in '_app_views_rates'`: "ActionView::Template::Error: undefined method 'rate' for nil",
		first + `  
ChargeFailed (card declined):

Causes:
Faraday::TimeoutError (timed out)
Net::OpenTimeout (execution expired)
  
app/charge.rb:3:in 'Charge#run'
app/charge.rb:9:in 'Charge#call'`: "ChargeFailed: card declined; caused by Net::OpenTimeout: execution expired",
	})
}

// Active Job says in a sentence why it gave up.
func TestRead_TakesTheErrorForWhichActiveJobGaveUp(t *testing.T) {
	reads(t, map[string]string{
		"E, [2026-11-28T12:00:00 #7] ERROR -- : [ActiveJob] [Charge] [b4] Discarded Charge (Job ID: b4) due to a Stripe::CardError (card (42) declined).":           "Stripe::CardError: card (42) declined",
		"E, [2026-11-28T12:00:00 #7] ERROR -- : [ActiveJob] Stopped retrying Charge (Job ID: b4) due to a RuntimeError (no route), which reoccurred on 5 attempts.": "RuntimeError: no route",
	})
}

// A folder can have a blank in its name.
func TestRead_ReadsPlacesWithBlanks(t *testing.T) {
	reads(t, map[string]string{
		"thread 'main' panicked at C:\\Users\\Ana Lima\\shop\\src\\main.rs:4:5:\nno rate\nnote: run with `RUST_BACKTRACE=1`": "panic: no rate",
		"thread 'main' panicked at 'no rate', /home/my jobs/src/main.rs:4:5\nnote: run with `RUST_BACKTRACE=1`":              "panic: no rate",
		"thread 'main' panicked at 'at 'a', b:1', src/main.rs:4:5":                                                           "panic: at 'a', b:1",
		"src/my jobs/a.ts(3,5): error TS2304: Cannot find name 'x'.":                                                         "TS2304: Cannot find name 'x'.",
	})
}

// What a test printed stands above it, under a heading like that of a test.
func TestRead_TakesTheTestOfJestThatFailed(t *testing.T) {
	reads(t, map[string]string{
		`
FAIL ./rates.test.js
  ● Console

    console.error
      slow

  ● rates › reads XAU

    no rate`: "rates › reads XAU: no rate",
	})
}

// A place on Windows ends a message as any other does.
func TestRead_EndsTheMessageOfMonologBeforeItsPlace(t *testing.T) {
	const trace = "\n[stacktrace]\n#0 {main}\n\"} "
	reads(t, map[string]string{
		`[2026-11-28 12:00:00] local.ERROR: no rate {"exception":"[object] (RuntimeException(code: 0): no rate at C:\\app\\Charge.php:30)` + trace:   "RuntimeException: no rate",
		`[2026-11-28 12:00:00] local.ERROR: no rate {"exception":"[object] (RuntimeException(code: 0): no rate at /app/Charge.php:30)` + trace:       "RuntimeException: no rate",
		`[2026-11-28 12:00:00] local.ERROR: no rate {"exception":"[object] (RuntimeException(code: 0): open at C: no at /app/Charge.php:30)` + trace: "RuntimeException: open at C: no",
	})
}

// Code without a file has a place of its own, and a shell says with more words that a process
// has ended by an exception.
func TestRead_ReadsWhatTheShellOfElixirSays(t *testing.T) {
	reads(t, map[string]string{
		"** (RuntimeError) no rate\n    nofile:1: (file)": "RuntimeError: no rate",
		"** (RuntimeError) no rate\n    iex:3: (file)":    "RuntimeError: no rate",
		`
** (EXIT from #PID<0.95.0>) shell process exited with reason: an exception was raised:
    ** (RuntimeError) no rate
        (shop 0.1.0) lib/shop.ex:3: Shop.run/1`: "RuntimeError: no rate",
	})
}
